package payments

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func chargeIn(s Status) Payment {
	p := Payment{Intent: goodIntent(), Status: s, StripePaymentIntent: "pi_1", StripeAccount: "acct_1"}
	p.Amount, p.ID = 1000, p.Intent.ID()
	if s == StatusSucceeded {
		p.AmountCaptured = 1000
	}
	return p
}

func before(kind Kind, s Status, amount int64) FollowUp {
	i := Intent{TenantID: "acme", IdempotencyKey: fmt.Sprint(kind, s, amount), Kind: kind, Amount: amount}
	return FollowUp{Payment: Payment{Intent: i, ID: i.ID(), Status: s}}
}

func asks(kind Kind, amount int64) Intent {
	return Intent{Kind: kind, PaymentID: goodPaymentID, Amount: amount, All: amount == 0 && kind != KindCancel}
}

// TestAcceptByStatus: every kind against every status of its charge, with nothing accepted before.
func TestAcceptByStatus(t *testing.T) {
	t.Parallel()
	allowed := map[Kind][]Status{
		KindCapture: {StatusRequiresCapture},
		KindCancel:  {StatusReceived, StatusWaiting, StatusUnknown, StatusPending, StatusRequiresAction, StatusRequiresCapture},
		KindRefund:  {StatusSucceeded},
	}
	for _, kind := range followUpKinds {
		for _, s := range Statuses() {
			want, wantAmount := VerdictInvalidState, int64(0)
			for _, a := range allowed[kind] {
				if a == s {
					want, wantAmount = VerdictStored, map[Kind]int64{KindCapture: 1000, KindRefund: 1000}[kind]
				}
			}
			amount, verdict, why := AcceptFollowUp(chargeIn(s), nil, asks(kind, 0))
			if verdict != want || amount != wantAmount || (why == "") != (want == VerdictStored) {
				t.Errorf("%s of a payment that is %s: %d, %s, %q; want %d, %s", kind, s, amount, verdict, why, wantAmount, want)
			}
			if verdict == VerdictInvalidState && !strings.Contains(why, string(s)) {
				t.Errorf("%s of %s: %q does not say how it stands", kind, s, why)
			}
		}
	}
}

// TestAcceptAfterOthers: every kind after a follow-up of every kind in every status.
func TestAcceptAfterOthers(t *testing.T) {
	t.Parallel()
	for _, s := range Statuses() {
		open := !s.Final()
		stands := open || s == StatusSucceeded
		for _, earlier := range followUpKinds {
			held := []FollowUp{before(earlier, s, 400)}
			capture, cancel := VerdictStored, VerdictStored
			if stands && earlier != KindRefund {
				capture, cancel = VerdictInvalidState, VerdictInvalidState
			}
			refund := VerdictInvalidState
			if open && earlier == KindCapture {
				refund = VerdictStored
			}
			for kind, want := range map[Kind]Verdict{KindCapture: capture, KindCancel: cancel, KindRefund: refund} {
				amount, verdict, why := AcceptFollowUp(chargeIn(StatusRequiresCapture), held, asks(kind, 0))
				if verdict != want {
					t.Errorf("held money, after a %s that is %s: %s is %s (%s), want %s", earlier, s, kind, verdict, why, want)
				}
				if kind == KindRefund && verdict == VerdictStored && amount != 400 {
					t.Errorf("a refund of all after a capture of 400 has %d", amount)
				}
			}
			amount, verdict, _ := AcceptFollowUp(chargeIn(StatusSucceeded), held, asks(KindRefund, 0))
			left := int64(1000)
			if earlier == KindRefund && open {
				left = 600
			}
			if verdict != VerdictStored || amount != left {
				t.Errorf("after a %s that is %s: a refund of all is %s of %d, want %d", earlier, s, verdict, amount, left)
			}
		}
	}
}

func TestAcceptAmounts(t *testing.T) {
	t.Parallel()
	refunded := chargeIn(StatusSucceeded)
	refunded.AmountRefunded = 300
	spent := chargeIn(StatusSucceeded)
	spent.AmountRefunded = 1000
	part := chargeIn(StatusSucceeded)
	part.AmountCaptured = 700
	tells := map[string]string{ // what is left, where that is less than was asked for
		"capture too much": "1000 (10.00 USD)", "refund too much": "700 (7.00 USD)", "of a part that was taken": "700 (7.00 USD)", "before the capture": "500 (5.00 USD)",
	}
	for name, c := range map[string]struct {
		charge  Payment
		earlier []FollowUp
		ask     Intent
		verdict Verdict
		amount  int64
	}{
		"capture a part":             {chargeIn(StatusRequiresCapture), nil, asks(KindCapture, 1), VerdictStored, 1},
		"capture all":                {chargeIn(StatusRequiresCapture), nil, asks(KindCapture, 1000), VerdictStored, 1000},
		"capture too much":           {chargeIn(StatusRequiresCapture), nil, asks(KindCapture, 1001), VerdictAmountExceeds, 0},
		"refund a part":              {refunded, nil, asks(KindRefund, 700), VerdictStored, 700},
		"refund too much":            {refunded, nil, asks(KindRefund, 701), VerdictAmountExceeds, 0},
		"refund the rest":            {refunded, []FollowUp{before(KindRefund, StatusPending, 200), before(KindRefund, StatusStalled, 100)}, asks(KindRefund, 0), VerdictStored, 400},
		"what succeeded counts once": {refunded, []FollowUp{before(KindRefund, StatusSucceeded, 300)}, asks(KindRefund, 0), VerdictStored, 700},
		"what failed is free":        {refunded, []FollowUp{before(KindRefund, StatusFailed, 300), before(KindRefund, StatusCanceled, 300)}, asks(KindRefund, 700), VerdictStored, 700},
		"nothing left":               {spent, nil, asks(KindRefund, 0), VerdictAmountExceeds, 0},
		"nothing left, named":        {spent, nil, asks(KindRefund, 1), VerdictAmountExceeds, 0},
		"of a part that was taken":   {part, nil, asks(KindRefund, 701), VerdictAmountExceeds, 0},
		"all of a part":              {part, nil, asks(KindRefund, 0), VerdictStored, 700},
		"before the capture": {chargeIn(StatusRequiresCapture), []FollowUp{before(KindCapture, StatusReceived, 600), before(KindRefund, StatusReceived, 100)},
			asks(KindRefund, 501), VerdictAmountExceeds, 0},
		"as much as the capture": {chargeIn(StatusRequiresCapture), []FollowUp{before(KindCapture, StatusUnknown, 600), before(KindRefund, StatusReceived, 100)},
			asks(KindRefund, 500), VerdictStored, 500},
		"no payment":      {Payment{}, nil, asks(KindRefund, 0), VerdictPaymentUnknown, 0},
		"of a refund":     {before(KindRefund, StatusSucceeded, 5).Payment, nil, asks(KindRefund, 0), VerdictPaymentUnknown, 0},
		"of a batch":      {Payment{Intent: Intent{Kind: KindBatch}, Status: StatusSucceeded}, nil, asks(KindCancel, 0), VerdictPaymentUnknown, 0},
		"a charge":        {chargeIn(StatusSucceeded), nil, goodIntent(), VerdictInvalidState, 0},
		"too many":        {chargeIn(StatusSucceeded), make([]FollowUp, FollowUpsMax), asks(KindRefund, 1), VerdictInvalidState, 0},
		"nearly too many": {chargeIn(StatusSucceeded), make([]FollowUp, FollowUpsMax-1), asks(KindRefund, 1), VerdictStored, 1},
	} {
		amount, verdict, why := AcceptFollowUp(c.charge, c.earlier, c.ask)
		if verdict != c.verdict || amount != c.amount || (why == "") != (verdict == VerdictStored) {
			t.Errorf("%s: %d, %s, %q; want %d, %s", name, amount, verdict, why, c.amount, c.verdict)
		}
		switch left, told := tells[name]; {
		case told && !strings.Contains(why, ", which is "+left+": "):
			t.Errorf("%s: %q does not say that %s is left", name, why, left)
		case !told && strings.ContainsAny(why, "0123456789") && name != "too many", c.ask.Amount > 1 && strings.Contains(why, strconv.FormatInt(c.ask.Amount, 10)):
			t.Errorf("%s: %q repeats a value", name, why)
		}
	}
}

// TestAcceptedRefundsNeverExceedWhatWasTaken: follow-ups are accepted in any order, begin in the order in which they were accepted, and end in any.
func TestAcceptedRefundsNeverExceedWhatWasTaken(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		charge := chargeIn(rapid.SampledFrom([]Status{StatusRequiresCapture, StatusSucceeded}).Draw(rt, "charge"))
		var list []FollowUp
		check := func() {
			if charge.AmountRefunded > charge.AmountCaptured || charge.AmountCaptured > charge.Amount {
				rt.Fatalf("refunded %d of %d, which is of %d", charge.AmountRefunded, charge.AmountCaptured, charge.Amount)
			}
			taken, sum, stand := charge.AmountCaptured, charge.AmountRefunded+reserved(list), 0
			if f := standing(list); charge.Status == StatusRequiresCapture && f != nil && f.Kind == KindCapture {
				taken = f.Amount
			}
			for _, f := range list {
				if f.Kind != KindRefund && (!f.Status.Final() || f.Status == StatusSucceeded) {
					stand++
				}
			}
			// While nothing is taken and nothing is about to be, refunds that were accepted behind a capture that failed wait for their end.
			if taken > 0 && charge.Status == StatusSucceeded && sum > taken || stand > 1 {
				rt.Fatalf("%d accepted and refunded of %d; %d captures and cancels stand", sum, taken, stand)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { check() },
			"accept": func(rt *rapid.T) {
				kind := rapid.SampledFrom(followUpKinds).Draw(rt, "kind")
				i := asks(kind, 0)
				if kind != KindCancel {
					i = asks(kind, rapid.Int64Range(0, 1200).Draw(rt, "amount"))
				}
				amount, verdict, _ := AcceptFollowUp(charge, list, i)
				if verdict != VerdictStored {
					return
				}
				f := before(kind, StatusReceived, amount)
				list = append(list, f)
			},
			"step": func(rt *rapid.T) {
				var open []int
				ahead := false // of what has not begun
				for n, f := range list {
					if !f.Status.Final() && (!ahead || f.Status != StatusReceived) {
						open = append(open, n)
					}
					ahead = ahead || !f.Status.Final() && f.Status != StatusPending
				}
				if len(open) == 0 {
					return
				}
				f := &list[rapid.SampledFrom(open).Draw(rt, "which")]
				to := rapid.SampledFrom([]Status{StatusWaiting, StatusUnknown, StatusStalled, StatusNeedsReview, StatusSucceeded, StatusFailed, StatusRejected}).Draw(rt, "to")
				if f.Kind == KindRefund && rapid.Bool().Draw(rt, "pending") {
					to = StatusPending
				}
				if f.Kind == KindRefund && charge.Status != StatusSucceeded {
					to = StatusFailed // not_captured
				}
				if f.Status = to; to != StatusSucceeded {
					return
				}
				switch f.Kind {
				case KindCapture:
					charge.Status, charge.AmountCaptured = StatusSucceeded, f.Amount
				case KindCancel:
					charge.Status = StatusCanceled
				case KindRefund:
					charge.AmountRefunded += f.Amount
				}
			},
		})
	})
}
