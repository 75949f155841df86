package payments

import (
	"fmt"
	"slices"
	"strings"
)

// followUpResolutions lists what a person may decide about a capture, a cancel or a refund. What is left to Stripe's own word is not in it: a capture or a
// cancel is read from its PaymentIntent, by unknown. What Stripe has nothing of is asked for again under another key.
var followUpResolutions = map[Status][]Status{
	StatusReceived:    {StatusCanceled},
	StatusWaiting:     {StatusCanceled},
	StatusNeedsReview: {StatusSucceeded, StatusFailed, StatusCanceled, StatusUnknown},
}

var followUpRemedies = map[Status]string{
	StatusReceived: "it will be sent by itself; to hold it back use `oncepay pause`",
	StatusWaiting:  "it will be tried again by itself at next_attempt_at; mend what its reason names",
	StatusUnknown:  "it may have been executed, and only Stripe's records end that: wait for its look-up",
	StatusPending:  "Stripe is processing it and will say how it ended",
	StatusStalled:  remedies[StatusStalled],
}

// resolveFollowUp is Resolve for a follow-up that nobody works on at this moment. A refund that succeeded counts on its charge (Transition.Target).
func resolveFollowUp(p Payment, d Decision, reason string) (Transition, error) {
	as := d.As
	choices := followUpResolutions[p.Status]
	switch {
	case d.PaymentIntent != "":
		return Transition{}, &Error{Code: CodeInvalid, Field: "payment_intent", Message: "is for payments alone, which a " + string(p.Kind) + " is not: leave it out"}
	case d.AmountCaptured != 0:
		return Transition{}, &Error{Code: CodeInvalid, Field: "amount_captured", Message: "is for payments alone, which a " + string(p.Kind) + " is not: leave it out"}
	case !slices.Contains(choices, as):
		return Transition{}, refused(p, as, withChoices(followUpRemedies[p.Status], choices))
	case p.Status != StatusNeedsReview && p.InDoubt:
		return Transition{}, refused(p, as, "something of it may be at Stripe, which a worker will settle: wait for that")
	case as == StatusSucceeded && p.Kind != KindRefund:
		return Transition{}, refused(p, as, "Stripe's PaymentIntent says what became of it: resolve it as unknown, which reads that")
	case as == StatusSucceeded && (strings.HasPrefix(p.Reason, ReasonAbsent) || strings.HasPrefix(p.Reason, ReasonMissingAtStripe)):
		return Transition{}, refused(p, as, "Stripe shows no such refund: resolve it as unknown to look again, or as failed")
	}
	if err := checkGivenBack(p, d); err != nil {
		return Transition{}, err
	}
	t := Transition{Status: as, Reason: ReasonResolved + ": " + reason}
	switch as {
	case StatusSucceeded:
		amount := d.GivenBack(p)
		if amount != p.Amount {
			t.Reason = ReasonResolved + ": " + FormatAmount(amount, p.Currency) + " given back: " + reason
		}
		t.Target = givenBackAs(p, amount)
	case StatusFailed:
		t.Failure = p.Failure
	case StatusUnknown:
		t.InDoubt, t.Failure = true, p.Failure
	case StatusCanceled:
		t.ClearSubmit = !p.InDoubt
	}
	return t, nil
}

// GivenBack is how much of the refund's charge counts as given back by a decision that it succeeded.
func (d Decision) GivenBack(refund Payment) int64 {
	if d.AmountRefunded > 0 {
		return d.AmountRefunded
	}
	return refund.Amount
}

// checkGivenBack says what is wrong with the amount of a decision about a follow-up. Where Stripe's refund has another amount than was asked for, ours is
// known to be wrong, and only a person can say which is right.
func checkGivenBack(p Payment, d Decision) error {
	invalid := func(text string) error { return &Error{Code: CodeInvalid, Field: "amount_refunded", Message: text} }
	switch {
	case d.AmountRefunded == 0 && d.As == StatusSucceeded && p.Reason == disagrees("amount").Reason:
		return invalid(fmt.Sprintf("is required: Stripe's refund has another amount than %d, which was asked for; say how much it gave back, in minor units, as Stripe's dashboard shows it", p.Amount))
	case d.AmountRefunded == 0:
		return nil
	case p.Kind != KindRefund:
		return invalid("is for refunds alone, which a " + string(p.Kind) + " is not: leave it out")
	case d.As != StatusSucceeded:
		return invalid("goes with succeeded alone: leave it out")
	case d.AmountRefunded < 1:
		return invalid("must be at least 1, in minor units: a refund that gave nothing back has failed")
	}
	return nil
}

// givenBackAs is givenBack on a person's word, which must fit what is known of the charge.
func givenBackAs(refund Payment, amount int64) TargetChange {
	return func(charge Payment) (Transition, error) {
		if charge.Status != StatusSucceeded || amount > charge.AmountCaptured-charge.AmountRefunded {
			return Transition{}, refused(refund, StatusSucceeded, "that is more than is known to have been taken of the payment and not given back")
		}
		return givenBack(amount)(charge)
	}
}
