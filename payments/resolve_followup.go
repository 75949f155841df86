package payments

import (
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
	t := Transition{Status: as, Reason: ReasonResolved + ": " + reason}
	switch as {
	case StatusSucceeded:
		t.Target = givenBackAs(p)
	case StatusFailed:
		t.Failure = p.Failure
	case StatusUnknown:
		t.InDoubt, t.Failure = true, p.Failure
	case StatusCanceled:
		t.ClearSubmit = !p.InDoubt
	}
	return t, nil
}

// givenBackAs is givenBack on a person's word, which must fit what is known of the charge.
func givenBackAs(refund Payment) TargetChange {
	return func(charge Payment) (Transition, error) {
		if charge.Status != StatusSucceeded || charge.AmountRefunded+refund.Amount > charge.AmountCaptured {
			return Transition{}, refused(refund, StatusSucceeded, "its amount is more than is known to have been taken of the payment and not given back")
		}
		return givenBack(refund.Amount)(charge)
	}
}
