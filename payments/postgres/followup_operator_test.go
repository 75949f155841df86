package postgres

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// reviewed is a refund that waits for a person, and one behind it.
func (b *bench) reviewed(charge payments.Payment) (refund, behind payments.FollowUp) {
	b.t.Helper()
	refund = b.ask(asking(payments.KindRefund, charge, "r", 4000), payments.VerdictStored).FollowUp
	behind = b.ask(asking(payments.KindRefund, charge, "behind", 1000), payments.VerdictStored).FollowUp
	claims := b.take(payments.TakeRequest{Limit: 10})
	for _, c := range claims {
		t := payments.Transition{Status: payments.StatusWaiting, Reason: "behind_another", ClearSubmit: true}
		if c.Payment.ID == refund.ID {
			t = payments.Transition{Status: payments.StatusNeedsReview, Reason: payments.ReasonDisagrees, InDoubt: true, Refund: refunded(c.Payment).Refund}
		}
		b.recordFollowUp(c, t, time.Hour)
	}
	return refund, behind
}

// TestResolveARefund: what a person says of a refund counts on its charge in the same transaction, and what is behind it goes on at once.
func TestResolveARefund(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	charge := b.taken("k")
	refund, behind := b.reviewed(charge)
	if got := b.take(payments.TakeRequest{Limit: 10}); len(got) != 0 {
		t.Fatalf("due: %+v", got)
	}
	b.clock.Advance(time.Second)
	done, err := b.Resolve(ctx, "acme", refund.ID, payments.Decision{As: payments.StatusSucceeded}, ada)
	if err != nil || done.Payment.Status != payments.StatusSucceeded || done.Sequence != 2 {
		t.Fatalf("Resolve: %+v, %v", done, err)
	}
	p, err := b.Find(ctx, "acme", charge.ID)
	if err != nil || p.AmountRefunded != 4000 || p.Sequence != charge.Sequence {
		t.Errorf("the charge: %+v, %v", p, err)
	}
	if c := b.takeUp("behind"); c.Payment.ID != behind.ID {
		t.Errorf("next: %+v", c)
	}
	if got := b.actions("payments resolve"); len(got) != 1 || !strings.Contains(got[0], `"status":"succeeded"`) || !strings.Contains(got[0], `"amount_refunded":4000`) || strings.Contains(got[0], "amount_captured") {
		t.Errorf("audit: %q", got)
	}
	if _, err := b.Resolve(ctx, "acme", refund.ID, payments.Decision{As: payments.StatusFailed}, ada); payments.ErrorCode(err) != payments.CodeInvalid {
		t.Errorf("again: %v", err)
	}
	var body string
	if err := b.pool.QueryRow(ctx, "SELECT body::text FROM payment_events WHERE payment_id = $1 ORDER BY sequence DESC LIMIT 1", refund.ID[:]).Scan(&body); err != nil ||
		!strings.Contains(body, `"stripe_refund":"re_`) || !strings.Contains(body, "oncepay.refund.succeeded") {
		t.Errorf("the event: %s, %v", body, err)
	}
}

// TestResolveARefundOfAnotherAmount: what Stripe gave back counts on the charge, and not what was asked for; what is left then can be refunded.
func TestResolveARefundOfAnotherAmount(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	charge := b.taken("k")
	refund, _ := b.reviewed(charge)
	b.exec("UPDATE payments SET reason = $1 WHERE id = $2", payments.ReasonDisagrees+": amount", refund.ID[:])
	for n, d := range []payments.Decision{{As: payments.StatusSucceeded}, {As: payments.StatusSucceeded, AmountRefunded: charge.AmountCaptured + 1}} {
		if _, err := b.Resolve(ctx, "acme", refund.ID, d, ada); payments.ErrorCode(err) != payments.CodeInvalid {
			t.Errorf("%d: %v", n, err)
		}
	}
	if _, err := b.Resolve(ctx, "acme", refund.ID, payments.Decision{As: payments.StatusSucceeded, AmountRefunded: 2500}, ada); err != nil {
		t.Fatal(err)
	}
	if p, err := b.Find(ctx, "acme", charge.ID); err != nil || p.AmountRefunded != 2500 {
		t.Errorf("the charge: %+v, %v", p, err)
	}
	if got := b.actions("payments resolve"); len(got) != 1 || !strings.Contains(got[0], `"amount_refunded":2500`) {
		t.Errorf("audit: %q", got)
	}
	b.ask(asking(payments.KindRefund, charge, "rest", charge.AmountCaptured-2500-1000+1), payments.VerdictAmountExceeds) // 1000 are set aside
	b.ask(asking(payments.KindRefund, charge, "rest", charge.AmountCaptured-2500-1000), payments.VerdictStored)
}

// TestResolveARefundOtherwise: nothing counts on the charge; while a rewind is running nobody decides.
func TestResolveARefundOtherwise(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	charge := b.taken("k")
	refund, _ := b.reviewed(charge)
	if _, err := b.Resolve(ctx, "acme", refund.ID, payments.Decision{As: payments.StatusUnknown}, ada); err != nil {
		t.Fatal(err)
	}
	c := b.takeUp("r")
	if !c.Payment.InDoubt || c.Payment.Status != payments.StatusUnknown {
		t.Errorf("looked up again: %+v", c.Payment)
	}
	b.recordFollowUp(c, payments.Transition{Status: payments.StatusNeedsReview, Reason: payments.ReasonAbsent}, 0)
	b.beginRewind(b.clock.Now())
	if _, err := b.Resolve(ctx, "acme", refund.ID, payments.Decision{As: payments.StatusFailed}, ada); payments.ErrorCode(err) != payments.CodeInvalid {
		t.Errorf("while a rewind is running: %v", err)
	}
	b.exec("UPDATE rewinds SET state = 'failed', finished_at = now()")
	if done, err := b.Resolve(ctx, "acme", refund.ID, payments.Decision{As: payments.StatusFailed}, ada); err != nil || done.Payment.Status != payments.StatusFailed {
		t.Errorf("Resolve: %+v, %v", done, err)
	}
	if p, err := b.Find(ctx, "acme", charge.ID); err != nil || p.AmountRefunded != 0 {
		t.Errorf("the charge: %+v, %v", p, err)
	}
}

// TestStalledRefund: one that was given up before anything was sent can be discarded, or is taken up again and sent.
func TestStalledRefund(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	charge := b.taken("k")
	stall := func(key string) payments.FollowUp {
		f := b.ask(asking(payments.KindRefund, charge, key, 1000), payments.VerdictStored).FollowUp
		b.recordFollowUp(b.takeUp(key), payments.Transition{
			Status: payments.StatusStalled, Reason: payments.ReasonNotSent, CountTry: true, ClearSubmit: true, DeadLetter: payments.ReasonAttemptsExhausted,
		}, 0)
		return f
	}
	discarded := stall("discarded")
	b.ask(asking(payments.KindRefund, charge, "behind", 1000), payments.VerdictStored)
	b.recordFollowUp(b.takeUp("behind"), payments.Transition{Status: payments.StatusWaiting, Reason: payments.ReasonBehind, ClearSubmit: true}, time.Hour)
	if v, err := b.PreviewReplay(ctx, payments.NewReplay{}); err != nil || v.Payments != 1 || v.Operations != 1 || v.Amount["usd"] != 1000 {
		t.Errorf("preview of a replay: %+v, %v", v, err)
	}
	v, err := b.PreviewDiscard(ctx, payments.LetterFilter{}, 0)
	if err != nil || v.Count != 1 || v.Canceled != 1 || len(v.Refused) != 0 || v.Amount["usd"] != 1000 {
		t.Errorf("preview: %+v, %v", v, err)
	}
	if done, err := b.Discard(ctx, payments.LetterFilter{}, 0, ann); err != nil || done.Canceled != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	if f, err := b.FindFollowUp(ctx, "acme", discarded.ID); err != nil || f.Status != payments.StatusCanceled {
		t.Errorf("discarded: %+v, %v", f, err)
	}
	behind := b.takeUp("behind") // it goes on at once
	b.recordFollowUp(behind, payments.Transition{Status: payments.StatusFailed, Reason: payments.ReasonRefundFailed}, 0)
	again := stall("again")
	b.newReplay(payments.NewReplay{})
	items, err := b.ClaimReplayItems(ctx, 10, time.Minute)
	if err != nil || len(items.Work) != 1 {
		t.Fatalf("%+v, %v", items, err)
	}
	if err := b.IssueReplayed(ctx, items.Work); err != nil {
		t.Fatal(err)
	}
	c := b.takeUp("again")
	if c.Payment.ID != again.ID || c.Payment.InDoubt || c.Payment.Status != payments.StatusWaiting || c.Payment.Tries != 0 {
		t.Errorf("taken up again: %+v", c.Payment)
	}
	b.recordFollowUp(c, refunded(c.Payment), 0)
	if p, err := b.Find(ctx, "acme", charge.ID); err != nil || p.AmountRefunded != 1000 {
		t.Errorf("the charge: %+v, %v", p, err)
	}
}

// TestBuriedRefund: one that ends its workers while a send may be under way goes on being looked up, and its letter says which it is.
func TestBuriedRefund(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	charge := b.taken("k")
	b.ask(asking(payments.KindRefund, charge, "r", 1000), payments.VerdictStored)
	c := b.takeUp("r")
	if err := b.BuryPayment(ctx, c, payments.DeadLetter{Reason: payments.ReasonWorkerKilled, Message: "gone"}, time.Minute); err != nil {
		t.Fatal(err)
	}
	if p := b.find(c); p.Status != payments.StatusUnknown || !p.InDoubt || p.Sequence != 2 {
		t.Errorf("buried: %+v", p)
	}
	if letters := b.letters(DeadLettersRequest{}); len(letters) != 1 || letters[0].IdempotencyKey != "r" || *letters[0].PaymentID != c.Payment.ID || letters[0].PaymentKind != payments.KindRefund {
		t.Errorf("letters: %+v", letters)
	}
	b.clock.Advance(time.Minute)
	c = b.takeUp("r")
	b.recordFollowUp(c, refunded(c.Payment), 0)
	if p, err := b.Find(ctx, "acme", charge.ID); err != nil || p.AmountRefunded != 1000 {
		t.Errorf("the charge: %+v, %v", p, err)
	}
}

// TestPreviewOfFollowUps: a message that asks for a refund may move money, in the currency of its payment, and as much as nobody can tell when that is not there;
// one that cannot be one is refused.
func TestPreviewOfFollowUps(t *testing.T) {
	t.Parallel()
	b := open(t)
	charge := b.taken("there")
	gone, there := `"payment_id":"pay_af5f4f1841e88ebcae502028d51c062c"`, `"payment_id" : "`+charge.ID.String()+`"`
	b.message("dl_refund", "r", `{"kind":"refund",`+gone+`,"amount":500}`, payments.ReasonInvalid, 1)
	b.message("dl_cancel", "c", `{"kind":"cancel",`+gone+`}`, payments.ReasonInvalid, 2)
	b.message("dl_nothing", "n", `{"kind":"refund",`+gone+`,"amount":0}`, payments.ReasonInvalid, 3)
	b.message("dl_known", "k", `{"kind":"refund",`+there+`,"amount":700}`, payments.ReasonInvalid, 4)
	b.message("dl_all", "a", `{"kind":"refund",`+there+`}`, payments.ReasonInvalid, 5)
	b.message("dl_raw", "w", "\x00\xff"+there, payments.ReasonUndecodable, 6)
	v, err := b.PreviewReplay(context.Background(), payments.NewReplay{})
	if err != nil || v.Count != 6 || v.Payments != 6 || v.Unpriced != 1 || v.Refused != 2 || v.Operations != 4 || len(v.Amount) != 1 || v.Amount["usd"] != 700+9900 {
		t.Errorf("%+v, %v", v, err)
	}
	d, err := b.PreviewDiscard(context.Background(), payments.LetterFilter{ID: "dl_known"}, 0)
	if err != nil || d.Unpriced != 0 || d.Amount["usd"] != 700 {
		t.Errorf("discarded: %+v, %v", d, err)
	}
	v, err = b.PreviewReplay(context.Background(), payments.NewReplay{Filter: payments.LetterFilter{ID: "dl_nothing"}, Set: map[string]string{"amount": ""}})
	if err != nil || v.Count != 1 || v.Unpriced != 1 || v.Refused != 0 || v.Operations != 1 {
		t.Errorf("all that is left: %+v, %v", v, err)
	}
	v, err = b.PreviewReplay(context.Background(), payments.NewReplay{Filter: payments.LetterFilter{ID: "dl_known"}, Set: map[string]string{"payment_id": "pay_af5f4f1841e88ebcae502028d51c062c"}})
	if err != nil || v.Count != 1 || v.Unpriced != 1 || len(v.Amount) != 0 {
		t.Errorf("of another payment: %+v, %v", v, err)
	}
}
