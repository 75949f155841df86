package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// errTicketCame: a ticket appeared or went between the two locks of Evidence.
var errTicketCame = payments.Errorf(payments.CodeUnavailable, "the payment's ticket changed meanwhile")

// correctedFrom begins the reason of a final payment that evidence has corrected.
const correctedFrom = "corrected_from_"

// Evidence implements payments.Store: it locks the ticket and then the payment, and writes what decide makes of it. The ticket is torn up, or
// replaced by one that nobody has, so that a late owner changes nothing. decide must not call anybody; it may run more than once.
//
// Evidence that tells nothing new about a payment that nobody has to act on writes nothing. A final payment moves only to succeeded; the
// reason is then corrected_from_<status>. Where a person has given the PaymentIntent to another payment a person decides: payments.ErrTaken for a
// final one. CodeNotFound; CodeInternal for any other move that the state machine does not have; and whatever decide returns.
func (s *Store) Evidence(ctx context.Context, tenantID string, id payments.ID, decide func(payments.Payment) (payments.Transition, error)) (payments.Recorded, error) {
	var adopted payments.Transition
	done, err := s.evidence(ctx, tenantID, id, func(p payments.Payment, _ time.Time) (t payments.Transition, err error) {
		adopted, err = decide(p)
		return adopted, err
	}, beside{})
	if !violates(err, intentTaken) {
		return done, err
	}
	owner, err := s.takenFrom(ctx, key{tenantID, id}, adopted)
	if err != nil {
		return done, err
	}
	return s.evidence(ctx, tenantID, id, func(p payments.Payment, _ time.Time) (payments.Transition, error) {
		t, err := decide(p)
		if err != nil || t.Object == nil || t.Object.ID != adopted.Object.ID {
			return t, err
		}
		if p.Status.Final() {
			return t, payments.ErrTaken
		}
		return t.Taken(owner), nil
	}, beside{})
}

// beside is what else a transaction of Evidence does; nil: nothing.
type beside struct {
	first func(context.Context, *transaction) error // before anything is locked
	also  func(*pgx.Batch, payments.Recorded)       // writes, when something is changed
}

// judging is told the payment as it is locked, and the store's time.
type judging = func(payments.Payment, time.Time) (payments.Transition, error)

func (s *Store) evidence(ctx context.Context, tenantID string, id payments.ID, decide judging, more beside) (payments.Recorded, error) {
	token := s.newToken() // names this very write, should the answer to its commit get lost
	var done payments.Recorded
	var messages []payments.OutboxItem
	err := s.write(ctx, func(ctx context.Context) error {
		messages = nil
		return s.transact(ctx, func(tx *transaction) error {
			if more.first != nil {
				if err := more.first(ctx, tx); err != nil {
					return err
				}
			}
			r, now, err := s.lockPayment(ctx, tx, key{tenantID, id})
			if err != nil {
				return err
			}
			c, result, err := s.judge(r, now, token, decide)
			if err != nil {
				return err
			}
			done = result
			b := tx.batch()
			if c != nil {
				if err := s.queueChanges(b, []*change{c}, now, &messages); err != nil {
					return err
				}
				if more.also != nil {
					more.also(b, done)
				}
			}
			s.reached("evidence")
			return tx.commit(ctx, b)
		})
	})
	if err != nil {
		return payments.Recorded{}, err
	}
	s.committed(messages)
	if from := done.Payment.Reason; done.Sequence > 0 && len(from) > len(correctedFrom) && from[:len(correctedFrom)] == correctedFrom {
		s.opts.Logger.Warn("evidence from Stripe corrected a final payment", "payment", id.String(), "tenant", tenantID, "reason", from)
	}
	return done, nil
}

// judge makes the change that the evidence asks for, or none.
func (s *Store) judge(r row, now time.Time, token payments.Token, decide judging) (*change, payments.Recorded, error) {
	p := r.payment
	if r.lastToken == token {
		return nil, payments.Recorded{Payment: p, Sequence: p.Sequence}, nil // an earlier attempt was committed
	}
	seen := p
	if r.ticket != nil {
		seen.NextAttemptAt = r.ticket.DueAt // also of one that somebody has: until then it is that worker's
	}
	t, err := decide(seen, now)
	if err != nil {
		return nil, payments.Recorded{}, err
	}
	corrects := p.Status.Final() && p.Status != payments.StatusSucceeded && t.Status == payments.StatusSucceeded
	switch {
	case t.Status == p.Status && !t.Status.HasTicket() && (p.Status.Final() || t.Quiet(p) || knows(p, t)):
		return nil, payments.Recorded{Payment: p}, nil
	case corrects:
		t.Reason = correctedFrom + string(p.Status)
	case t.ThenSend || !p.Status.CanMove(t.Status):
		return nil, payments.Recorded{}, impossible(p, t)
	}
	if p.Owned && p.InDoubt && !decides(t.Status) {
		t.InDoubt = true // whoever has the ticket now may be sending
	}
	c, err := s.newChange(r, t, token, now, now.Add(s.opts.Backoff.After(t.Delay, nil)))
	if err != nil {
		return nil, payments.Recorded{}, err
	}
	return c, *recorded(c), nil
}

// decides reports whether a status tells what became of every send: the others leave open what an owner is doing at this moment.
func decides(s payments.Status) bool {
	return !s.HasTicket() && s != payments.StatusStalled && s != payments.StatusNeedsReview
}

// knows reports whether the payment already shows all that the transition says.
func knows(p payments.Payment, t payments.Transition) bool {
	next := apply(p, t, p.UpdatedAt)
	return next.Reason == p.Reason && next.StripePaymentIntent == p.StripePaymentIntent && next.StripeCharge == p.StripeCharge &&
		next.AmountCaptured == p.AmountCaptured && next.Tries == p.Tries && t.DeadLetter == ""
}

// lockPayment locks a payment's ticket, if there is one, and then the payment, and reads both.
func (s *Store) lockPayment(ctx context.Context, tx *transaction, k key) (row, time.Time, error) {
	b := tx.batch()
	locked := false
	b.Queue(query("lock_ticket"), k.tenant, k.id[:]).QueryRow(func(r pgx.Row) error {
		var owned bool
		err := r.Scan(&owned)
		locked = err == nil
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	var found []row
	var now time.Time
	b.Queue(query("lock_payment"), k.tenant, k.id[:], s.now()).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			r, err := scanRow(rows, &now)
			if err != nil {
				return err
			}
			found = append(found, r)
		}
		return rows.Err()
	})
	// The lock waits for whoever changes the payment, and reads the ticket as it stood before; so the ticket is read again.
	var current []row
	tenants, ids := keyArrays([]key{k})
	b.Queue(query("read_by_id"), tenants, ids).Query(collect(&current))
	if err := tx.send(ctx, b); err != nil {
		return row{}, now, err
	}
	if len(found) == 0 || len(current) == 0 {
		return row{}, now, notFound(k.id)
	}
	if locked != (current[0].ticket != nil) {
		return row{}, now, errTicketCame
	}
	return current[0], now.UTC(), nameRefunds(ctx, tx, current)
}

func notFound(id payments.ID) error {
	return payments.Errorf(payments.CodeNotFound, "there is no payment %s", id)
}
