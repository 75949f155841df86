package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// BuryPayment implements payments.Store: it dead-letters a payment whose ticket the claim holds and settles its status in the same
// transaction. While a send is in doubt, and while Stripe is processing it, the ticket stays, due after the delay, so that the payment goes on
// being looked up; else it is stalled. There is one dead letter for a payment: a second time opens it again. CodeTicketLost.
func (s *Store) BuryPayment(ctx context.Context, c payments.Claim, letter payments.DeadLetter, delay time.Duration) error {
	k := claimKey(&c)
	letter.Origin = payments.MessageOrigin{Subject: letter.Origin.Subject}
	var messages []payments.OutboxItem
	err := s.write(ctx, func(ctx context.Context) error {
		messages = nil
		return s.transact(ctx, func(tx *transaction) error {
			r, now, err := s.lockPayment(ctx, tx, k)
			if err != nil {
				return err
			}
			if !c.Token.IsZero() && r.lastToken == c.Token {
				return nil // an earlier attempt was committed
			}
			if !r.holds(c.Token) && !(payments.SabotageNoTokenCheck && r.ticket != nil) {
				return ticketLost(k.id)
			}
			ch, err := s.buryChange(r, c.Token, letter, now, delay)
			if err != nil {
				return err
			}
			b := tx.batch()
			if err := s.queueChanges(b, []*change{ch}, now, &messages); err != nil {
				return err
			}
			s.reached("bury")
			return tx.commit(ctx, b)
		})
	})
	if err != nil {
		return err
	}
	s.committed(messages)
	return nil
}

// buryChange is the transition of a payment that is given up, and its dead letter.
func (s *Store) buryChange(r row, token payments.Token, letter payments.DeadLetter, now time.Time, delay time.Duration) (*change, error) {
	p := r.payment
	t := payments.Transition{Status: payments.StatusStalled, Reason: string(letter.Reason), Rounds: p.Rounds}
	switch {
	case p.Status == payments.StatusPending:
		t.Status, t.InDoubt = payments.StatusPending, p.InDoubt
	case p.Cancelling(): // looked up, it is found to be declined, and its cancel goes on
		t.Status, t.InDoubt, t.Failure = payments.StatusUnknown, true, p.Failure
	case p.InDoubt || p.Status == payments.StatusUnknown:
		t.Status, t.InDoubt, t.AbsentAt = payments.StatusUnknown, true, p.AbsentAt
	}
	c, err := s.newChange(r, t, token, now, now.Add(delay))
	if err != nil {
		return nil, err
	}
	c.letter = &letter
	return c, c.buried(s.opts.Namespace)
}

// BuryMessage implements payments.Store: it commits a dead letter for a message. The same message again, told by its origin, is the same dead
// letter and only seen later; one that was a suspect becomes open. CodeInvalid without an origin.
func (s *Store) BuryMessage(ctx context.Context, letter payments.DeadLetter) error {
	letter, err := s.messageLetter(letter)
	if err != nil {
		return err
	}
	var messages []payments.OutboxItem
	err = s.write(ctx, func(ctx context.Context) error {
		messages = nil
		return s.transact(ctx, func(tx *transaction) error {
			var now time.Time
			b := tx.batch()
			b.Queue(query("clock"), s.now()).QueryRow(func(r pgx.Row) error { return r.Scan(&now) })
			if err := tx.send(ctx, b); err != nil {
				return err
			}
			var hold *time.Time
			if d := s.hold(); d > 0 {
				hold = nullable(now.Add(d))
			}
			b = tx.batch()
			b.Queue(query("bury_message"), append(letterParams(letter), now, hold)...).Query(collectLetter(&messages))
			s.reached("bury_message")
			return tx.commit(ctx, b)
		})
	})
	if err != nil {
		return err
	}
	s.committed(messages)
	return nil
}

// messageLetter is a letter that can be told by its origin.
func (s *Store) messageLetter(d payments.DeadLetter) (payments.DeadLetter, error) {
	if d.Origin.Stream == "" || d.Origin.Sequence == 0 || d.Origin.StreamCreated.IsZero() {
		return d, payments.Errorf(payments.CodeInvalid, "a message's dead letter needs its origin: stream, created time and sequence")
	}
	return s.prepareLetter(d), nil
}
