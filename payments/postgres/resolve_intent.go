package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncepay/oncepay/payments"
)

// intentTaken is the constraint that refuses a PaymentIntent which a person has given to another payment.
const intentTaken = "resolved_intents_pkey"

// keepIntent is for how long a PaymentIntent is kept while it is looked for among all payments, which must end well before.
const keepIntent = 15 * time.Minute

// named is the PaymentIntent by which a person resolves a payment as succeeded.
type named struct {
	key
	intent string
	// until is set while it is kept for the payment; else Stripe has named it for this very payment, and needs nobody's word.
	until time.Time
}

// nameIntent keeps the PaymentIntent that a person names for the payment, if no other payment has it, so that of two people who name one at the same
// time one is refused. Whoever writes another payment by it from now on takes it back, and this person is refused; those who had begun before are waited
// for, and their payments are then found among all. nil: the decision names none.
func (s *Store) nameIntent(ctx context.Context, tenantID string, id payments.ID, d payments.Decision) (*named, error) {
	if d.As != payments.StatusSucceeded {
		return nil, nil
	}
	p, err := s.Find(ctx, tenantID, id)
	n := &named{key: key{tenantID, id}, intent: d.PaymentIntent}
	switch {
	case err != nil:
		return nil, err
	case p.Status.Final(), d.PaymentIntent != "" && payments.CheckPaymentIntent(d.PaymentIntent) != "":
		return nil, nil // which the domain refuses
	case d.PaymentIntent == "", d.PaymentIntent == p.StripePaymentIntent:
		n.intent = p.StripePaymentIntent
		return n, nil
	}
	err = s.write(ctx, func(ctx context.Context) error {
		return translate(s.pool.QueryRow(ctx, query("name_intent"), s.now(), n.intent, tenantID, id[:], keepIntent.Microseconds()).Scan(&n.until))
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, s.notFree(ctx, n)
	}
	if err == nil {
		err = s.searchIntent(ctx, n)
	}
	if err != nil {
		s.releaseIntent(ctx, n)
		return nil, err
	}
	return n, nil
}

// notFree says why a PaymentIntent could not be kept for a payment.
func (s *Store) notFree(ctx context.Context, n *named) error {
	owner, provisional, err := s.intentOwner(ctx, n.intent)
	switch {
	case err != nil:
		return err
	case owner == key{} || provisional:
		return &payments.Error{Code: payments.CodeInvalid, Field: "payment_intent", Message: "somebody else is naming it at this moment: look at that payment first, then try again"}
	}
	return n.takenBy(owner)
}

// takenBy refuses what another payment has; a tenant is never told of another one's.
func (n *named) takenBy(owner key) error {
	whose := "another tenant's payment"
	if owner.tenant == n.tenant {
		whose = owner.id.String()
	}
	return &payments.Error{Code: payments.CodeInvalid, Field: "payment_intent", Message: "is already that of " + whose +
		", and one PaymentIntent pays for one payment: its metadata at Stripe say whose it is"}
}

// intentOwner is the payment that a person has given a PaymentIntent to, or is about to (provisional); zero: there is none.
func (s *Store) intentOwner(ctx context.Context, intent string) (owner key, provisional bool, err error) {
	var id []byte
	err = s.pool.QueryRow(ctx, query("intent_owner"), intent).Scan(&owner.tenant, &id, &provisional)
	if errors.Is(err, pgx.ErrNoRows) {
		return key{}, false, nil
	}
	copy(owner.id[:], id)
	return owner, provisional, translate(err)
}

// searchIntent looks for another payment that has the PaymentIntent. A person waits for it, and for a large table for minutes.
func (s *Store) searchIntent(ctx context.Context, n *named) error {
	if err := s.awaitRecorders(ctx); err != nil {
		return err
	}
	var owner key
	err := s.transact(ctx, func(tx *transaction) error {
		b := tx.batch()
		b.Queue("set local enable_seqscan = on")
		b.Queue("set local statement_timeout = '10min'")
		b.Queue(query("intent_carrier"), n.intent, n.tenant, n.id[:]).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var id []byte
				if err := rows.Scan(&owner.tenant, &id); err != nil {
					return err
				}
				copy(owner.id[:], id)
			}
			return rows.Err()
		})
		return tx.commit(ctx, b)
	})
	if err != nil {
		return translate(err)
	}
	if owner != (key{}) {
		return n.takenBy(owner)
	}
	return nil
}

// recordersMax is how long whoever names a PaymentIntent waits for those who record: longer than one that hangs is left in its transaction.
const recordersMax = time.Minute

// awaitRecorders waits for everybody who has begun to record an outcome without knowing what has been named.
func (s *Store) awaitRecorders(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, recordersMax)
	defer cancel()
	var those []string // nil: all
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, flushRetry.Cap) {
		if err := s.pool.QueryRow(ctx, query("recorders"), those).Scan(&those); err != nil {
			return translate(err)
		}
		if len(those) == 0 {
			return nil
		}
		s.reached("recorders")
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return translate(ctx.Err())
		case <-timer.C:
		}
	}
}

// releaseIntent lets go what is kept for a payment that does not succeed by it. Should it fail, the time that it is kept for ends.
func (s *Store) releaseIntent(ctx context.Context, n *named) {
	if n == nil || n.until.IsZero() {
		return
	}
	err := s.write(context.WithoutCancel(ctx), func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, query("release_intent"), n.intent, n.tenant, n.id[:], n.until)
		return err
	})
	if err != nil {
		s.opts.Logger.Warn("a PaymentIntent that was named in vain is kept for some minutes", "payment", n.id.String(), "tenant", n.tenant, "error", err)
	}
}

// confirm gives the PaymentIntent to the payment, in the transaction that resolves it.
func (n *named) confirm(ctx context.Context, s *Store, tx *transaction) error {
	if n == nil || n.intent == "" {
		return nil
	}
	confirmed := true
	b := tx.batch()
	if n.until.IsZero() {
		b.Queue(query("return_intent"), n.intent, n.tenant, n.id[:])
	} else {
		b.Queue(query("confirm_intent"), s.now(), n.intent, n.tenant, n.id[:], n.until).Exec(func(tag pgconn.CommandTag) error {
			confirmed = tag.RowsAffected() == 1
			return nil
		})
	}
	if err := tx.send(ctx, b); err != nil {
		return err
	}
	if !confirmed {
		return n.meanwhile()
	}
	return nil
}

// meanwhile is the refusal of what was right when it was looked at.
func (n *named) meanwhile() error {
	return &payments.Error{Code: payments.CodeInvalid, Field: "payment_intent", Message: "what is known of it has changed meanwhile: look at the payment, then try again"}
}

// stands reports whether what was found out about the PaymentIntent holds for the payment as it is now.
func (n *named) stands(p payments.Payment) bool {
	return n == nil || !n.until.IsZero() || n.intent == p.StripePaymentIntent
}
