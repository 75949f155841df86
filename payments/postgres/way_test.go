package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// TestWay follows one payment from Admit to its outcome.
func TestWay(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	i := intent("acme", "order-1", 9900)
	i.Description, i.Metadata, i.ExpiresAt = "two shirts ✓", map[string]string{"order": "<1>", "x": ""}, b.clock.Now().Add(time.Hour+time.Nanosecond)
	r := b.claiming(i)
	a := b.admit(r)
	if a.Verdict != payments.VerdictClaimed || a.Claim.Token != r.Token {
		t.Fatalf("Admit: %+v", a)
	}
	c := a.Claim
	if c.Payment.InDoubt || !c.Payment.FirstSubmitAt.IsZero() || !c.LeaseUntil.Equal(b.clock.Now().Add(time.Minute)) || !c.ClaimedAt.Equal(b.clock.Now()) {
		t.Errorf("a claim carries the payment as it was before: %+v", c)
	}
	stored := b.find(c)
	if !stored.InDoubt || !stored.FirstSubmitAt.Equal(b.clock.Now()) || !stored.LastSubmitAt.Equal(b.clock.Now()) || stored.StripeAccount != "acct_1" ||
		!stored.Livemode || !stored.Owned || stored.Metadata["order"] != "<1>" || stored.Description != i.Description || stored.ShownStatus() != payments.StatusProcessing {
		t.Errorf("stored: %+v", stored)
	}
	if got := a.Payment; got.CreatedAt != stored.CreatedAt || got.ExpiresAt != stored.ExpiresAt || got.FirstSubmitAt != stored.FirstSubmitAt || got.Owned != stored.Owned {
		t.Errorf("the admission's payment is not the row:\n%+v\n%+v", got, stored)
	}
	b.clock.Advance(time.Second)
	done := b.record(c, waiting(payments.ReasonRateLimited), 5*time.Second)
	if done.Sequence != 1 || done.Payment.Tries != 1 || !done.Payment.NextAttemptAt.Equal(b.clock.Now().Add(5*time.Second)) {
		t.Errorf("Record: %+v", done)
	}
	if got := b.take(payments.TakeRequest{Limit: 10}); len(got) != 0 {
		t.Fatalf("taken before it is due: %+v", got)
	}
	b.clock.Advance(5 * time.Second)
	got := b.take(payments.TakeRequest{Limit: 10})
	if len(got) != 1 || got[0].Abandoned != 0 || got[0].Payment.InDoubt || got[0].Payment.Status != payments.StatusWaiting {
		t.Fatalf("Take: %+v", got)
	}
	done = b.record(got[0], succeeded(got[0].Payment), 0)
	if done.Sequence != 2 || done.Payment.AmountCaptured != 9900 || done.Payment.FinalizedAt.IsZero() {
		t.Errorf("Record: %+v", done)
	}
	final := b.find(c)
	if final.Status != payments.StatusSucceeded || final.InDoubt || final.StripeCharge == "" || final.Owned || !final.NextAttemptAt.IsZero() {
		t.Errorf("final: %+v", final)
	}
	entries, err := b.Timeline(ctx, "acme", c.Payment.ID)
	if err != nil || len(entries) != 3 || entries[0].Status != payments.StatusReceived || entries[1].Reason != payments.ReasonRateLimited ||
		entries[2].Type != "oncepay.payment.succeeded" {
		t.Errorf("Timeline: %+v, %v", entries, err)
	}
	if items := b.sent.all(); len(items) != 2 || items[1].EventID != c.Payment.ID.String()+"_2_succeeded" || items[1].ID == 0 {
		t.Errorf("Committed: %+v", items)
	}
}

// TestOwnClock is the way of a payment on PostgreSQL's own clock.
func TestOwnClock(t *testing.T) {
	t.Parallel()
	b := open(t, func(o *Options) { o.Clock = nil })
	before := time.Now()
	a := b.admit(b.claiming(intent("acme", "k", 1)))
	if a.Claim.LeaseUntil.Before(before.Add(time.Minute)) || a.Claim.LeaseUntil.After(time.Now().Add(time.Minute)) || a.Claim.ClaimedAt.IsZero() {
		t.Errorf("the claim: %+v", a.Claim)
	}
	done, err := b.Record(context.Background(), payments.Recording{Claim: a.Claim, Transition: waiting("locked"), Delay: time.Hour})
	if err != nil || done.Payment.NextAttemptAt.Sub(done.Payment.UpdatedAt) != time.Hour || done.Payment.UpdatedAt.Before(done.Payment.CreatedAt) {
		t.Errorf("Record: %+v, %v", done, err)
	}
	if got := b.take(payments.TakeRequest{Limit: 1}); len(got) != 0 {
		t.Errorf("taken before it is due: %+v", got)
	}
	b.evidence(a.Claim, payments.Transition{Status: payments.StatusWaiting, Reason: "replayed"})
	got := b.take(payments.TakeRequest{Limit: 1})
	if len(got) != 1 {
		t.Fatalf("not taken: %+v", got)
	}
	if _, err := b.Extend(context.Background(), got[0], time.Minute, true); err != nil {
		t.Errorf("Extend: %v", err)
	}
	b.bury(payments.DeadLetter{Reason: payments.ReasonInvalid, Origin: b.origin(1)})
	if starts, err := b.Suspect(context.Background(), payments.DeadLetter{Origin: b.origin(2)}); starts != 1 || err != nil {
		t.Errorf("Suspect: %d, %v", starts, err)
	}
	if err := b.Ping(context.Background()); err != nil {
		t.Errorf("Ping: %v", err)
	}
	b.record(got[0], succeeded(a.Payment), 0)
}
