package postgres

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// Resolve records a person's decision about a payment, with its line in the audit, in one transaction. The open dead letter of a payment that is final
// then is settled with it. CodeNotFound; CodeInvalid as payments.Resolve, while a rewind is running, and for a PaymentIntent that another payment has.
func (s *Store) Resolve(ctx context.Context, tenantID string, id payments.ID, d payments.Decision, op payments.Operation) (payments.Recorded, error) {
	p, err := s.Find(ctx, tenantID, id)
	if err != nil {
		return payments.Recorded{}, err
	}
	if p.Kind.FollowUp() {
		return s.resolveFollowUp(ctx, p, d, op)
	}
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
		s.queueResolved(b, done.Payment, before, d, op)
	}})
	if violates(err, intentTaken) { // by somebody who has just begun to name it for another payment
		return done, n.meanwhile()
	}
	return done, err
}

// queueResolved adds what belongs to a decision beside what it makes of the payment.
func (s *Store) queueResolved(b *pgx.Batch, p payments.Payment, before payments.Status, d payments.Decision, op payments.Operation) {
	if p.Status.Final() {
		b.Queue(query("settle_ticket_letter"), p.TenantID, p.ID[:])
	}
	became := map[string]any{"from": before, "status": p.Status}
	if d.As == payments.StatusSucceeded {
		became["stripe_payment_intent"] = p.StripePaymentIntent
		switch p.Kind {
		case payments.KindCharge:
			became["amount_captured"] = p.AmountCaptured
		case payments.KindRefund:
			became["amount_refunded"] = d.GivenBack(p)
		}
	}
	result, _ := json.Marshal(became)
	s.queueAudit(b, payments.AuditEntry{
		Actor: op.Actor, Action: "payments resolve", Reason: op.Reason, TenantID: p.TenantID, Target: p.ID.Format(p.Kind), Result: result,
	})
}

// resolveFollowUp is Resolve of a capture, cancel or refund, with what it does to its charge. It names no PaymentIntent: it has its charge's.
func (s *Store) resolveFollowUp(ctx context.Context, p payments.Payment, d payments.Decision, op payments.Operation) (payments.Recorded, error) {
	charge, err := payments.ParseID(p.PaymentID)
	if err != nil {
		return payments.Recorded{}, payments.Errorf(payments.CodeInternal, "%s names no payment", p.ID.Format(p.Kind))
	}
	before := p.Status
	e := &followUpEnd{
		s: s, key: key{p.TenantID, p.ID}, charge: key{p.TenantID, charge}, token: s.newToken(), chargeToken: s.newToken(),
		moves: true, wakes: !slices.Contains(holdsUp, d.As),
		beside: beside{
			first: s.notRewinding,
			also:  func(b *pgx.Batch, done payments.Recorded) { s.queueResolved(b, done.Payment, before, d, op) },
		},
	}
	e.judge = func(own row, now time.Time) (payments.Transition, time.Time, time.Time, error) {
		before = own.payment.Status
		if own.ticket != nil {
			own.payment.NextAttemptAt = own.ticket.DueAt // also of one that somebody has: until then it is that worker's
		}
		t, err := payments.Resolve(own.payment, d, op, now)
		if err == nil && !own.payment.Status.CanMove(t.Status) {
			err = impossible(own.payment, t)
		}
		return t, now, now.Add(s.opts.Backoff.After(t.Delay, nil)), err
	}
	return e.run(ctx)
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
