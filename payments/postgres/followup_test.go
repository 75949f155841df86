package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// taken is a charge of 99.00 USD that has succeeded.
func (b *bench) taken(key string) payments.Payment {
	b.t.Helper()
	c := b.claim(key)
	return b.record(c, succeeded(c.Payment), 0).Payment
}

// held is a charge of 99.00 USD whose money is held.
func (b *bench) held(key string) payments.Payment {
	b.t.Helper()
	r := b.claiming(intent("acme", key, 9900))
	r.Intent.CaptureMethod = payments.CaptureManual
	c := b.admit(r).Claim
	return b.record(c, requiresCapture(c.Payment), 0).Payment
}

func requiresCapture(p payments.Payment) payments.Transition {
	t := succeeded(p)
	t.Status, t.Object.Status, t.Object.AmountReceived = payments.StatusRequiresCapture, payments.StripeRequiresCapture, 0
	return t
}

// asking asks for a follow-up of the charge; no amount: all.
func asking(kind payments.Kind, charge payments.Payment, key string, amount int64) payments.FollowUpRequest {
	return payments.FollowUpRequest{Lane: payments.LaneInteractive, Intent: payments.Intent{
		TenantID: charge.TenantID, IdempotencyKey: key, Kind: kind, PaymentID: charge.ID.String(), Amount: amount,
		All: amount == 0 && kind != payments.KindCancel,
	}}
}

func (b *bench) ask(r payments.FollowUpRequest, want payments.Verdict) payments.FollowUpAdmission {
	b.t.Helper()
	a, err := b.AdmitFollowUp(context.Background(), r)
	if err != nil || a.Verdict != want {
		b.t.Fatalf("AdmitFollowUp of %s: %s (%s), %v; want %s", r.Intent.IdempotencyKey, a.Verdict, a.Why, err, want)
	}
	return a
}

// takeUp takes the tickets that are due, one of which must be of the key.
func (b *bench) takeUp(key string) payments.Claim {
	b.t.Helper()
	for _, c := range b.take(payments.TakeRequest{Limit: 50}) {
		if c.Payment.IdempotencyKey == key {
			return c
		}
	}
	b.t.Fatalf("no ticket of %s is due", key)
	return payments.Claim{}
}

// refunded is Stripe's word that the refund was made.
func refunded(p payments.Payment) payments.Transition {
	return payments.Transition{
		Status: payments.StatusSucceeded, Refund: &payments.Refund{ID: "re_" + p.ID.Hex()[:24], Status: payments.RefundSucceeded, Amount: p.Amount},
		Target: func(charge payments.Payment) (payments.Transition, error) {
			return payments.Transition{Status: charge.Status, Reason: charge.Reason, Refunded: p.Amount}, nil
		},
	}
}

func (b *bench) recordFollowUp(c payments.Claim, t payments.Transition, delay time.Duration) payments.Recorded {
	b.t.Helper()
	done, err := b.RecordFollowUp(context.Background(), payments.Recording{Claim: c, Transition: t, Delay: delay, At: b.clock.Now()})
	if err != nil {
		b.t.Fatalf("RecordFollowUp %s: %v", t.Status, err)
	}
	return done
}

// TestRefund: a refund keeps the amount that it was accepted with, is worked on as a charge is, and its charge shows what was given back.
func TestRefund(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	charge := b.taken("k")
	a := b.ask(asking(payments.KindRefund, charge, "r", 0), payments.VerdictStored)
	f := a.FollowUp
	if f.Amount != 9900 || f.Currency != "usd" || f.StripePaymentIntent != charge.StripePaymentIntent || f.StripeAccount != account.ID || !f.Livemode ||
		f.Number != 1 || f.Status != payments.StatusReceived || !f.All || f.PaymentID != charge.ID.String() {
		t.Errorf("stored: %+v", f)
	}
	if a = b.ask(asking(payments.KindRefund, charge, "r", 0), payments.VerdictExists); a.FollowUp.ID != f.ID || a.FollowUp.Number != 1 {
		t.Errorf("again: %+v", a)
	}
	if a = b.ask(asking(payments.KindRefund, charge, "r", 9900), payments.VerdictConflict); len(a.Differs) != 1 || a.Differs[0] != "amount" {
		t.Errorf("with an amount: %+v", a)
	}
	b.ask(asking(payments.KindRefund, charge, "more", 1), payments.VerdictAmountExceeds)
	c := b.takeUp("r")
	state, err := b.FollowUpState(ctx, c.Payment)
	if err != nil || state.Target.ID != charge.ID || state.Ahead || state.StripeRefund != "" || state.Target.AmountCaptured != 9900 {
		t.Errorf("state: %+v, %v", state, err)
	}
	done := b.recordFollowUp(c, refunded(c.Payment), 0)
	if done.Sequence != 1 || done.Payment.Status != payments.StatusSucceeded {
		t.Errorf("recorded: %+v", done)
	}
	p, err := b.Find(ctx, "acme", charge.ID)
	if err != nil || p.AmountRefunded != 9900 || p.AmountCaptured != 9900 || p.Sequence != charge.Sequence || p.Status != payments.StatusSucceeded {
		t.Errorf("the charge: %+v, %v", p, err)
	}
	if f, err = b.FindFollowUp(ctx, "acme", f.ID); err != nil || f.StripeRefund == "" || f.Status != payments.StatusSucceeded || f.AmountCaptured != 0 {
		t.Errorf("the refund: %+v, %v", f, err)
	}
	entries, err := b.Timeline(ctx, "acme", f.ID)
	if err != nil || len(entries) != 2 || entries[0].Type != "oncepay.refund.received" || entries[1].Type != "oncepay.refund.succeeded" {
		t.Errorf("timeline: %+v, %v", entries, err)
	}
}
