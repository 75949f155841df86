package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// Resolve records a person's decision about a payment, with its line in the audit, in one transaction. The open dead letter of a payment that is final
// then is settled with it. CodeNotFound; CodeInvalid as payments.Resolve, while a rewind is running, and for a PaymentIntent that another payment has.
func (s *Store) Resolve(ctx context.Context, tenantID string, id payments.ID, d payments.Decision, op payments.Operation) (payments.Recorded, error) {
	n, err := s.nameIntent(ctx, tenantID, id, d)
	if err != nil {
		return payments.Recorded{}, err
	}
	done, err := s.resolve(ctx, tenantID, id, d, op, n)
	if err != nil {
		s.releaseIntent(ctx, n)
	}
	return done, err
}

func (s *Store) resolve(ctx context.Context, tenantID string, id payments.ID, d payments.Decision, op payments.Operation, n *named) (payments.Recorded, error) {
	var before payments.Status
	// By the store's time, as tickets are given: the clock of whoever decides may be wrong, and a payment that a worker has would look free.
	decide := func(p payments.Payment, now time.Time) (payments.Transition, error) {
		before = p.Status
		if !n.stands(p) {
			return payments.Transition{}, n.meanwhile()
		}
		return payments.Resolve(p, d, op, now)
	}
	first := func(ctx context.Context, tx *transaction) error {
		if err := s.notRewinding(ctx, tx); err != nil {
			return err
		}
		return n.confirm(ctx, s, tx)
	}
	done, err := s.evidence(ctx, tenantID, id, decide, beside{first: first, also: func(b *pgx.Batch, done payments.Recorded) {
		if done.Payment.Status.Final() {
			b.Queue(query("settle_ticket_letter"), tenantID, id[:])
		}
		became := map[string]any{"from": before, "status": done.Payment.Status}
		if d.As == payments.StatusSucceeded {
			became["stripe_payment_intent"], became["amount_captured"] = done.Payment.StripePaymentIntent, done.Payment.AmountCaptured
		}
		result, _ := json.Marshal(became)
		s.queueAudit(b, payments.AuditEntry{
			Actor: op.Actor, Action: "payments resolve", Reason: op.Reason, TenantID: tenantID, Target: done.Payment.ID.Format(done.Payment.Kind), Result: result,
		})
	}})
	if violates(err, intentTaken) { // by somebody who has just begun to name it for another payment
		return done, n.meanwhile()
	}
	return done, err
}

// notRewinding refuses what a person decides while a rewind is running. What it has found at Stripe is held against the payments as they stood when it
// listed them, and then against those that are still to be worked on: one that was ended in between would stay ended, although it was charged. A
// decision that was begun before has been made long before the rewind lists anything.
func (s *Store) notRewinding(ctx context.Context, tx *transaction) error {
	var running []payments.Rewind
	b := tx.batch()
	b.Queue(query("running_rewind")).Query(collectRewinds(&running))
	if err := tx.send(ctx, b); err != nil {
		return err
	}
	if len(running) > 0 {
		return &payments.Error{Code: payments.CodeInvalid, Message: "a rewind is running, and until it ends nobody knows what became of the payment: `oncepay rewind` follows it"}
	}
	return nil
}
