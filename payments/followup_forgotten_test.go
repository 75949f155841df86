package payments

import (
	"context"
	"slices"
	"testing"
	"time"
)

// TestAcceptForgotten: neither what its charge has become, or is still to be found out about it, nor what seems to be open again refuses one that may have been
// executed; a charge that is not there, one of which nothing was ever taken, and an amount that was never there do.
func TestAcceptForgotten(t *testing.T) {
	t.Parallel()
	open := []Status{StatusReceived, StatusWaiting, StatusUnknown, StatusPending, StatusNeedsReview, StatusStalled}
	more := map[Kind][]Status{
		KindCapture: append([]Status{StatusSucceeded, StatusCanceled}, open...),
		KindCancel:  append([]Status{StatusCanceled}, open...),
		KindRefund:  open,
	}
	for _, kind := range followUpKinds {
		for _, s := range Statuses() {
			charge := chargeIn(s)
			charge.CaptureMethod = CaptureManual
			_, want, _ := AcceptFollowUp(charge, nil, asks(kind, 0))
			if slices.Contains(more[kind], s) {
				want = VerdictStored
			}
			for _, earlier := range [][]FollowUp{nil, {before(KindCapture, StatusUnknown, 1000)}, {before(KindRefund, StatusUnknown, 1000)}} {
				wanted := want
				if len(earlier) > 0 && earlier[0].Kind == KindCapture && (s == StatusRequiresCapture || s == StatusRequiresAction) {
					wanted = map[Kind]Verdict{KindCapture: VerdictInvalidState, KindCancel: VerdictInvalidState, KindRefund: VerdictInvalidState}[kind]
					if kind == KindRefund && s == StatusRequiresCapture {
						wanted = VerdictStored // behind the capture
					}
				}
				amount, verdict, why, lookOnly := AcceptForgotten(charge, earlier, asks(kind, 0))
				full := len(earlier) > 0 && earlier[0].Kind == KindRefund && kind == KindRefund
				if verdict != wanted || verdict == VerdictStored && kind != KindCancel && amount != 1000 || (why == "") != (verdict == VerdictStored) || lookOnly != (full && verdict == VerdictStored) {
					t.Errorf("%s of a payment that is %s, after %d: %s of %d, look only %t, want %s", kind, s, len(earlier), verdict, amount, lookOnly, wanted)
				}
			}
		}
		if _, verdict, _, _ := AcceptForgotten(Payment{}, nil, asks(kind, 0)); verdict != VerdictPaymentUnknown {
			t.Errorf("%s of no payment: %s", kind, verdict)
		}
	}
	automatic, unsent := chargeIn(StatusUnknown), chargeIn(StatusCanceled)
	unsent.StripePaymentIntent, unsent.CaptureMethod = "", CaptureManual
	for _, charge := range []Payment{automatic, unsent} {
		if _, verdict, _, _ := AcceptForgotten(charge, nil, asks(KindCapture, 0)); verdict != VerdictInvalidState {
			t.Errorf("a capture of what never was to be captured: %s", verdict)
		}
	}
}

// TestForgottenAmounts: a refund for which the figures leave no room is looked for and not sent, since it was either executed or refused.
func TestForgottenAmounts(t *testing.T) {
	t.Parallel()
	refunded := chargeIn(StatusSucceeded)
	refunded.AmountRefunded = 700
	open := []FollowUp{before(KindRefund, StatusUnknown, 600)}
	for name, c := range map[string]struct {
		charge   Payment
		earlier  []FollowUp
		ask      Intent
		verdict  Verdict
		amount   int64
		lookOnly bool
	}{
		"fits":                       {chargeIn(StatusSucceeded), open, asks(KindRefund, 400), VerdictStored, 400, false},
		"the rest":                   {chargeIn(StatusSucceeded), open, asks(KindRefund, 0), VerdictStored, 400, false},
		"one before seems open":      {chargeIn(StatusSucceeded), open, asks(KindRefund, 401), VerdictStored, 401, true},
		"of a charge in doubt":       {chargeIn(StatusUnknown), open, asks(KindRefund, 401), VerdictStored, 401, true},
		"all of what is captured":    {chargeIn(StatusUnknown), []FollowUp{before(KindCapture, StatusUnknown, 700), before(KindRefund, StatusUnknown, 200)}, asks(KindRefund, 0), VerdictStored, 500, false},
		"more than is captured":      {chargeIn(StatusUnknown), []FollowUp{before(KindCapture, StatusUnknown, 700)}, asks(KindRefund, 800), VerdictStored, 800, true},
		"more than is left":          {refunded, nil, asks(KindRefund, 301), VerdictStored, 301, true},
		"more than was taken":        {refunded, open, asks(KindRefund, 1001), VerdictAmountExceeds, 0, false},
		"more than could be taken":   {chargeIn(StatusUnknown), nil, asks(KindRefund, 1001), VerdictAmountExceeds, 0, false},
		"capture more than was held": {chargeIn(StatusRequiresCapture), nil, asks(KindCapture, 1001), VerdictAmountExceeds, 0, false},
		"too many":                   {chargeIn(StatusSucceeded), make([]FollowUp, FollowUpsMax), asks(KindRefund, 1), VerdictInvalidState, 0, false},
	} {
		amount, verdict, why, lookOnly := AcceptForgotten(c.charge, c.earlier, c.ask)
		if amount != c.amount || verdict != c.verdict || lookOnly != c.lookOnly || (why == "") != (verdict == VerdictStored) {
			t.Errorf("%s: %d, %s, %q, look only %t", name, amount, verdict, why, lookOnly)
		}
	}
}

// canceling knows of a cancel, by default of one that may have succeeded before a restore.
type canceling struct {
	FollowUps
	cancel OpenCancel
	err    error
	asked  int
}

func newCanceling() *canceling { return &canceling{cancel: OpenCancel{Open: true, Forgotten: true}} }

func (c *canceling) CancelOpen(context.Context, Payment) (OpenCancel, error) {
	c.asked++
	return c.cancel, c.err
}

// TestNothingIsSentForWhatMayBeCanceled: a charge in doubt of which Stripe has nothing is not sent again while such a cancel is open, and is canceled when its
// absence is proven; what Stripe has of it counts as ever.
func TestNothingIsSentForWhatMayBeCanceled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sent, absent time.Duration
		found        []PaymentIntent
		status       Status
		reason       string
		asked        int
	}{
		"a moment ago": {time.Minute, 0, nil, StatusUnknown, ReasonLookingUp, 1},
		"a day ago":    {25 * time.Hour, 0, nil, StatusUnknown, ReasonLookingUp, 1},
		"not there":    {26 * time.Hour, time.Hour, nil, StatusCanceled, ReasonCanceledOnRequest, 1},
		"there":        {time.Minute, 0, []PaymentIntent{*charged()}, StatusSucceeded, "", 0},
	} {
		b := newBench()
		claim, store := testClaim(StatusUnknown, true), newCanceling()
		claim.Payment.FirstSubmitAt, claim.Payment.LastSubmitAt = b.now.Add(-c.sent), b.now.Add(-c.sent)
		if c.absent > 0 {
			claim.Payment.AbsentAt = b.now.Add(-c.absent)
		}
		b.FollowUps = store
		b.look = func(Payment, func() error) Observation {
			return Observation{Kind: ObservedRecords, Account: testAccount, Found: c.found}
		}
		s := b.Settle(t.Context(), t.Context(), claim)
		if s.Err != nil || len(b.recorded) != 1 || b.recorded[0].Transition.Status != c.status || b.recorded[0].Transition.Reason != c.reason || store.asked != c.asked {
			t.Errorf("%s: %+v, %+v, asked %d times", name, s, b.recorded, store.asked)
		}
		for _, call := range b.calls {
			if call == "submit" {
				t.Errorf("%s: it was sent: %v", name, b.calls)
			}
		}
		store.err = Errorf(CodeUnavailable, "away")
		if s := b.Settle(t.Context(), t.Context(), claim); c.asked > 0 && !Retryable(s.Err) {
			t.Errorf("%s: what could not be asked was passed over: %+v", name, s)
		}
	}
}
