package deadletter

import (
	"context"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/payments"
)

// TestReplayOfFollowUps: a refund that was refused is asked for again, and refused again for as long as its payment does not allow it; then it is stored,
// once, and a stalled one is taken up again.
func TestReplayOfFollowUps(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	ctx := context.Background()
	charge := w.claim("order-1")
	refund := func(key string) string {
		return `{"idempotency_key":"` + key + `","kind":"refund","payment_id":"` + charge.Payment.ID.String() + `","amount":500}`
	}
	w.bury("dl_early", "acme", "refund-1", payments.ReasonInvalid, refund("refund-1"))
	w.bury("dl_invalid", "acme", "refund-2", payments.ReasonInvalid, strings.Replace(refund("refund-2"), "500", "0", 1))
	run := w.runner()
	r := w.replay(payments.NewReplay{})
	w.once(run)
	if i := w.item(r.ID, "dl_early"); i.Result != payments.ReplayFailedAgain || !strings.Contains(i.Detail, "payment_id: the payment is processing") {
		t.Errorf("before its payment has succeeded: %+v", i)
	}
	if i := w.item(r.ID, "dl_invalid"); i.Result != payments.ReplayFailedAgain || !strings.Contains(i.Detail, "amount must be") {
		t.Errorf("of nothing: %+v", i)
	}
	w.record(charge, payments.Transition{Status: payments.StatusSucceeded, Object: &payments.PaymentIntent{ID: "pi_1", Status: payments.StripeSucceeded, AmountReceived: 9900}})
	again := w.replay(payments.NewReplay{Filter: payments.LetterFilter{ID: "dl_early"}})
	w.once(run)
	id := payments.NewID("acme", "refund-1")
	f, err := w.FindFollowUp(ctx, "acme", id)
	if err != nil || f.Status != payments.StatusReceived || f.Amount != 500 || f.Currency != "usd" || f.StripePaymentIntent != "pi_1" || f.Number != 1 {
		t.Fatalf("%+v, %v", f, err)
	}
	if i := w.item(again.ID, "dl_early"); i.Result != "" || i.PaymentID == nil || *i.PaymentID != id {
		t.Errorf("stored: %+v", i)
	}
	if d := w.letter("dl_early"); d.State != payments.DeadLetterReplayed {
		t.Errorf("%+v", d)
	}
	// It is given up, with a dead letter of its own, which takes it up again without asking whether it is accepted.
	taken, err := w.Take(ctx, payments.TakeRequest{Lane: f.Lane, Limit: 5, Lease: 1 << 36, Account: account})
	if err != nil || len(taken.Claims) != 1 {
		t.Fatalf("%+v, %v", taken, err)
	}
	stalled := payments.Transition{Status: payments.StatusStalled, Reason: payments.ReasonNotSent, ClearSubmit: true, DeadLetter: payments.ReasonAttemptsExhausted}
	if _, err := w.RecordFollowUp(ctx, payments.Recording{Claim: taken.Claims[0], Transition: stalled, At: w.Now()}); err != nil {
		t.Fatal(err)
	}
	w.once(run)
	w.replay(payments.NewReplay{Filter: payments.LetterFilter{PaymentID: &id}})
	w.once(run)
	if f, err = w.FindFollowUp(ctx, "acme", id); err != nil || f.Status != payments.StatusWaiting || f.Reason != payments.ReasonReplayed {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestReplayOfWhatIsStored: after a restore a letter may be open although its refund was stored, or was made at Stripe meanwhile. Its replay ends it, and asks
// for nothing twice.
func TestReplayOfWhatIsStored(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	ctx := context.Background()
	charge := w.claim("order-1")
	w.record(charge, payments.Transition{Status: payments.StatusSucceeded, Object: &payments.PaymentIntent{ID: "pi_1", Status: payments.StripeSucceeded, AmountReceived: 9900}})
	w.bury("dl_1", "acme", "refund-1", payments.ReasonInvalid, `{"idempotency_key":"refund-1","kind":"refund","payment_id":"`+charge.Payment.ID.String()+`","amount":500}`)
	in := payments.Intent{TenantID: "acme", IdempotencyKey: "refund-1", Kind: payments.KindRefund, PaymentID: charge.Payment.ID.String(), Amount: 500}
	if a, err := w.AdmitFollowUp(ctx, payments.FollowUpRequest{Intent: in, Lane: payments.LaneInteractive}); err != nil || a.Verdict != payments.VerdictStored {
		t.Fatalf("%+v, %v", a, err)
	}
	taken, err := w.Take(ctx, payments.TakeRequest{Lane: payments.LaneInteractive, Limit: 5, Lease: 1 << 36, Account: account})
	if err != nil || len(taken.Claims) != 1 {
		t.Fatalf("%+v, %v", taken, err)
	}
	done := payments.Transition{Status: payments.StatusSucceeded, Refund: &payments.Refund{ID: "re_1"}}
	if _, err := w.RecordFollowUp(ctx, payments.Recording{Claim: taken.Claims[0], Transition: done, At: w.Now()}); err != nil {
		t.Fatal(err)
	}
	r := w.replay(payments.NewReplay{})
	w.once(w.runner())
	if i := w.item(r.ID, "dl_1"); i.Result != payments.ReplayAlreadySettled {
		t.Errorf("%+v", i)
	}
	if d := w.letter("dl_1"); d.State != payments.DeadLetterReplayed {
		t.Errorf("%+v", d)
	}
	if list, err := w.FollowUpsOf(ctx, "acme", charge.Payment.ID, payments.KindRefund); err != nil || len(list) != 1 || list[0].Status != payments.StatusSucceeded {
		t.Errorf("%+v, %v", list, err)
	}
}
