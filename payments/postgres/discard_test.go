package postgres

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// TestDiscard: a stalled payment is canceled with its dead letter, one that may have been charged keeps it, and so does one that a replay has.
func TestDiscard(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	stalled, settledLetter, replayed := b.stall("stalled"), b.stall("settled"), b.stall("replayed")
	if _, err := b.Evidence(ctx, "acme", *settledLetter.PaymentID, func(p payments.Payment) (payments.Transition, error) { return succeeded(p), nil }); err != nil {
		t.Fatal(err)
	}
	unknown := b.claim("unknown")
	if err := b.BuryPayment(ctx, unknown, payments.DeadLetter{Reason: payments.ReasonWorkerKilled, Message: "m"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	b.message("dl_m", "m", "{}", payments.ReasonInvalid, 1)
	b.newReplay(payments.NewReplay{Filter: payments.LetterFilter{ID: replayed.ID}})
	v, err := b.PreviewDiscard(ctx, payments.LetterFilter{}, 0)
	if err != nil || v.Count != 5 || v.Settled != 1 || v.Canceled != 1 || len(v.Refused) != 2 || v.Unpriced != 1 || v.Amount["usd"] != 4*9900 {
		t.Errorf("preview: %+v, %v", v, err)
	}
	if v, err := b.PreviewDiscard(ctx, payments.LetterFilter{}, 2); err != nil || v.Count != 2 {
		t.Errorf("preview of two: %+v, %v", v, err)
	}
	done, err := b.Discard(ctx, payments.LetterFilter{}, 0, ann)
	if err != nil || done.Discarded != 3 || done.Canceled != 1 || len(done.Refused) != 2 {
		t.Fatalf("%+v, %v", done, err)
	}
	if !slices.Equal(v.Refused, done.Refused) {
		t.Errorf("the preview says %+v, and refused is %+v", v.Refused, done.Refused)
	}
	for _, r := range done.Refused {
		if r.LetterID == stalled.ID || !strings.Contains(r.Why, ": ") {
			t.Errorf("%+v", r)
		}
	}
	for key, want := range map[string]payments.Status{
		"stalled": payments.StatusCanceled, "settled": payments.StatusSucceeded, "replayed": payments.StatusStalled, "unknown": payments.StatusUnknown,
	} {
		if p, err := b.FindByKey(ctx, "acme", key); err != nil || p.Status != want {
			t.Errorf("%s: %s, %v, want %s", key, p.Status, err, want)
		}
	}
	if list := b.letters(DeadLettersRequest{LetterFilter: payments.LetterFilter{State: payments.DeadLetterDiscarded}}); len(list) != 3 {
		t.Errorf("%d are discarded", len(list))
	}
	lines := b.audited("dlq discard")
	if len(lines) != 1 || lines[0].Actor != ann.Actor || !strings.Contains(string(lines[0].Result), `"canceled":1`) {
		t.Errorf("audit: %+v", lines)
	}
	if again, err := b.Discard(ctx, payments.LetterFilter{ID: stalled.ID}, 0, ann); err != nil || again.Discarded != 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
	if _, err := b.Discard(ctx, payments.LetterFilter{}, 0, payments.Operation{}); payments.ErrorCode(err) != payments.CodeInvalid {
		t.Errorf("by nobody: %v", err)
	}
}

// TestResolve: a person's decision, its line in the audit and the dead letter's end are one commit; what is refused leaves nothing.
func TestResolve(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	c := b.claim("k")
	if err := b.BuryPayment(ctx, c, payments.DeadLetter{Reason: payments.ReasonWorkerKilled, Message: "m"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	id := c.Payment.ID
	if _, err := b.Resolve(ctx, "acme", id, payments.Decision{As: payments.StatusFailed}, ann); payments.ErrorCode(err) != payments.CodeInvalid {
		t.Errorf("an unknown one as failed: %v", err)
	}
	if lines := b.audited("payments resolve"); len(lines) != 0 {
		t.Errorf("a refusal is in the audit: %+v", lines)
	}
	if _, err := b.Resolve(ctx, "acme", id, payments.Decision{As: payments.StatusNeedsReview}, ann); payments.ErrorCode(err) != payments.CodeInvalid {
		t.Errorf("an unknown one for review, and from there to anything: %v", err)
	}
	if done, err := b.Evidence(ctx, "acme", id, func(payments.Payment) (payments.Transition, error) {
		return payments.Transition{Status: payments.StatusNeedsReview, Reason: payments.ReasonSeveral, InDoubt: true}, nil
	}); err != nil || done.Payment.Status != payments.StatusNeedsReview {
		t.Fatalf("what Stripe's records say: %+v, %v", done, err)
	}
	for _, as := range []payments.Status{payments.StatusUnknown, payments.StatusSucceeded} {
		d := payments.Decision{As: as}
		if as == payments.StatusSucceeded {
			d.PaymentIntent = "pi_seen"
		}
		done, err := b.Resolve(ctx, "acme", id, d, ann)
		if err != nil || done.Payment.Status != as || done.Sequence == 0 || !strings.Contains(done.Payment.Reason, ann.Reason) {
			t.Fatalf("%s: %+v, %v", as, done, err)
		}
		want := payments.DeadLetterOpen
		if as.Final() {
			want = payments.DeadLetterDiscarded
		}
		if list := b.letters(DeadLettersRequest{LetterFilter: payments.LetterFilter{PaymentID: &id}}); len(list) != 1 || list[0].State != want {
			t.Errorf("%s: %+v, want %s", as, list, want)
		}
	}
	if p, err := b.Find(ctx, "acme", id); err != nil || p.StripePaymentIntent != "pi_seen" || p.AmountCaptured != p.Amount || p.InDoubt {
		t.Errorf("succeeded: %+v, %v", p, err)
	}
	lines := b.audited("payments resolve")
	if len(lines) == 2 && !strings.Contains(string(lines[0].Result), `"amount_captured":9900,`) {
		t.Errorf("audit: %+v", lines)
	}
	if len(lines) != 2 || lines[0].Target != id.String() || lines[0].TenantID != "acme" || !strings.Contains(string(lines[0].Result), `"from":"unknown"`) {
		t.Errorf("audit: %+v", lines)
	}
	if _, err := b.Resolve(ctx, "acme", payments.NewID("acme", "x"), payments.Decision{As: payments.StatusSucceeded, PaymentIntent: "pi_seen"}, ann); payments.ErrorCode(err) != payments.CodeNotFound {
		t.Errorf("of none: %v", err)
	}
}
