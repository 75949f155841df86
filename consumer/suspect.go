package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// suspectPatience is how long a suspect waits for its turn. It keeps a slot meanwhile, and others need slots too.
const suspectPatience = 5 * time.Second

// errDealtWith: nothing is left to do with the message.
var errDealtWith = errors.New("the message has been dealt with")

// suspect deals with a message that has been delivered often. If its row is there, somebody else has the payment and nothing is suspect. If
// not, every earlier start may have killed its worker: the raw bytes are committed first, one message at a time, and after the third unfinished
// start the message is dead. A count is a commit, so time without PostgreSQL never counts, and a bystander clears itself by being admitted.
// release, never nil, lets the next suspect start; suspect, when not nil, is the origin whose count the admission ends.
func (w *Worker) suspect(ctx context.Context, m held, r reading) (release func(), suspect *payments.MessageOrigin, err error) {
	none := func() {}
	bounded, cancel := context.WithTimeout(ctx, commitTimeout)
	_, err = w.Store.Find(bounded, r.tenant, r.id)
	cancel()
	w.noteStore(err)
	switch {
	case err == nil:
		return none, nil, nil
	case payments.ErrorCode(err) != payments.CodeNotFound:
		return none, nil, err
	case !w.sameStream(m, r):
		return none, nil, errDealtWith
	}
	patience := time.NewTimer(suspectPatience)
	defer patience.Stop()
	select {
	case w.starting <- struct{}{}:
	case <-patience.C:
		return none, nil, payments.Errorf(payments.CodeUnavailable, "other messages that were delivered often are before this one")
	case <-ctx.Done():
		return none, nil, payments.Errorf(payments.CodeUnavailable, "the worker stops")
	}
	done := func() { <-w.starting }
	held := true
	defer func() {
		if held {
			done()
		}
	}()
	if w.storeAway.Load() {
		return none, nil, payments.Errorf(payments.CodeUnavailable, "the store went away while the message waited for its turn")
	}
	why := refusal{reason: payments.ReasonWorkerKilled, message: "the worker ended each time it began with this message"}
	starts, err := w.Store.Suspect(ctx, letterOf(m, r, why, payments.DeadLetterSuspect))
	w.noteStore(err)
	if err != nil {
		return none, nil, err
	}
	if starts > payments.SuspectStartsMax {
		w.bury(ctx, m, r, why)
		return none, nil, errDealtWith
	}
	from := m.origin
	held = false
	return done, &from, nil
}
