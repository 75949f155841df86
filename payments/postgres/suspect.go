package postgres

import (
	"context"

	"github.com/oncepay/oncepay/payments"
)

// Suspect implements payments.Store: it commits that a message which was delivered often and never admitted is about to be started, and
// returns how often that has happened; for one that is no suspect any more, more than SuspectStartsMax. It is not repeated when its answer
// got lost: a count that is one too high would bury a healthy message.
func (s *Store) Suspect(ctx context.Context, letter payments.DeadLetter) (starts int, err error) {
	if letter.Reason == "" {
		letter.Reason = payments.ReasonHandlerPanic
	}
	if letter, err = s.messageLetter(letter); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, translate(err)
	}
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.FlushTimeout)
	defer cancel()
	err = s.pool.QueryRow(own, query("suspect"), append(letterParams(letter), s.now(), payments.SuspectStartsMax)...).Scan(&starts)
	return starts, translate(err)
}
