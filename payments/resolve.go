package payments

import (
	"slices"
	"strings"
	"time"
)

// resolutions lists what a person may decide about a payment, by where it stands. Nothing in it moves money: waiting sends only what is known
// not to have been executed, and unknown asks Stripe first. What is not listed either would guess, or has a command of its own.
//
// needs_review leads to failed and canceled, since Stripe's records have been read to their end by then and a person has to say what they mean.
// So nobody brings a payment there by hand: that would end in two steps, unread, what may be charged.
var resolutions = map[Status][]Status{
	StatusReceived:        {StatusCanceled},
	StatusWaiting:         {StatusCanceled},
	StatusUnknown:         {StatusSucceeded},
	StatusRequiresCapture: {StatusSucceeded, StatusUnknown},
	StatusRequiresAction:  {StatusSucceeded, StatusUnknown},
	StatusNeedsReview:     {StatusSucceeded, StatusFailed, StatusCanceled, StatusWaiting, StatusUnknown},
}

// CheckResolution says what is wrong with a status that no payment can be resolved as, or returns "". What can be made of any payment can be made
// of one that waits for a person.
func CheckResolution(as Status) string {
	all := resolutions[StatusNeedsReview]
	if slices.Contains(all, as) {
		return ""
	}
	why := "must be one of " + statusNames(all)
	if as == StatusNeedsReview {
		why += ": what waits for a person is found by Stripe's records alone; unknown has them asked again"
	}
	return why
}

// remedies says what to do instead, where nothing that was asked for is allowed.
var remedies = map[Status]string{
	StatusReceived:        "it will be sent by itself; to hold it back use `oncepay pause`",
	StatusWaiting:         "it will be tried again by itself at next_attempt_at; mend what its reason names",
	StatusUnknown:         "it may have been charged, and only Stripe's records end that: wait for its look-up; what is refunded or canceled at Stripe is adopted as such",
	StatusPending:         "Stripe is processing it and will say how it ended; what is canceled at Stripe is adopted as such",
	StatusRequiresCapture: "the money is held: capture or cancel it at Stripe, then resolve it as unknown, which reads what it became",
	StatusRequiresAction:  "its customer may still confirm it: cancel its PaymentIntent at Stripe, then resolve it as unknown, which reads what it became",
	StatusStalled:         "it has a dead letter: `oncepay dlq replay` takes it up again, `oncepay dlq discard` cancels it",
}

// Decision is what a person says has become of a payment.
type Decision struct {
	As Status
	// PaymentIntent is what was charged at Stripe, pi_…: for succeeded alone, and required there while the payment has none.
	PaymentIntent string
	// AmountCaptured is how much of the amount was taken, in minor units, 1 to the amount: for succeeded alone; 0: what Stripe has shown of that very
	// PaymentIntent, else all of it.
	AmountCaptured int64
	// AmountRefunded is how much a refund has given back, in minor units, 1 to what was taken of its payment: for a refund as succeeded alone, and required
	// where Stripe's refund has another amount; 0: all of the refund's own amount.
	AmountRefunded int64
}

// Resolve says what a person's decision makes of a payment, or why it must not be: because it could charge twice, or lose a charge. waiting
// submits it again, and unknown looks it up again. It is pure. CodeInvalid, naming the member and the remedy.
func Resolve(p Payment, d Decision, op Operation, now time.Time) (Transition, error) {
	as, reason := d.As, strings.TrimSpace(op.Reason)
	switch {
	case strings.TrimSpace(op.Actor) == "":
		return Transition{}, &Error{Code: CodeInvalid, Field: "actor", Message: "is required: say who decides"}
	case reason == "":
		return Transition{}, &Error{Code: CodeInvalid, Field: "reason", Message: "is required: say why, for whoever reads the timeline later"}
	case CheckResolution(as) != "":
		return Transition{}, &Error{Code: CodeInvalid, Field: "as", Message: CheckResolution(as)}
	case p.Status.Final():
		return Transition{}, refused(p, as, "it has its outcome, which only evidence from Stripe corrects")
	case p.Owned && now.Before(p.NextAttemptAt):
		return Transition{}, refused(p, as, "a worker is at it at this moment; try again when it is done")
	case p.Kind.FollowUp():
		return resolveFollowUp(p, d, reason)
	case !slices.Contains(resolutions[p.Status], as):
		return Transition{}, refused(p, as, withChoices(remedies[p.Status], resolutions[p.Status]))
	}
	if why := unsafe(p, as, now); why != "" {
		return Transition{}, refused(p, as, why)
	}
	if err := checkCharged(p, d); err != nil {
		return Transition{}, err
	}
	if err := checkCaptured(p, d); err != nil {
		return Transition{}, err
	}
	if d.AmountRefunded != 0 {
		return Transition{}, &Error{Code: CodeInvalid, Field: "amount_refunded", Message: "is for refunds alone, which a payment is not: leave it out"}
	}
	t := Transition{Status: as, Reason: ReasonResolved + ": " + reason}
	if d.PaymentIntent != "" {
		t.Reason = ReasonResolved + ": " + d.PaymentIntent + ": " + reason
	}
	switch as {
	case StatusSucceeded:
		t.Object = chargedBy(p, d)
	case StatusFailed:
		t.Failure = p.Failure
	case StatusUnknown:
		t.InDoubt, t.Failure = true, p.Failure
	case StatusWaiting:
		t.ClearSubmit, t.ResetTries = true, true
	}
	return t, nil
}

// unsafe says why a decision that the payment's status allows would charge twice or lose a charge after all, or returns "".
func unsafe(p Payment, as Status, now time.Time) string {
	known := p.InDoubt || !p.FirstSubmitAt.IsZero() || p.StripePaymentIntent != "" // something of it may be at Stripe
	switch {
	case (p.Status == StatusReceived || p.Status == StatusWaiting) && (p.InDoubt || p.StripePaymentIntent != ""):
		return "something of it may be at Stripe, which a worker will settle: wait for that"
	case (as == StatusFailed || as == StatusCanceled || as == StatusWaiting) && p.AmountCaptured > 0:
		return "Stripe showed that money was taken: resolve it as succeeded, and refund what was not owed"
	case as == StatusWaiting && known:
		return "something of it may be at Stripe, and to submit it again could charge twice; resolve it as unknown, which looks first, or as what Stripe shows"
	case as == StatusWaiting && p.Expired(now):
		return "its expires_at has passed, after which nothing is charged; resolve it as canceled"
	case as == StatusUnknown && !known:
		return "it is known not to be at Stripe, so there is nothing to look for; resolve it as waiting to submit it again, or as canceled"
	}
	return ""
}

// TakeUpAgain is the replay of a stalled payment: it is due now with all its tries before it, and is looked up first if anything of it may be at
// Stripe. Every other payment either has its outcome or is being worked on, so that a replay must not touch it. It is pure. CodeInvalid.
func TakeUpAgain(p Payment) (Transition, error) {
	if p.Status != StatusStalled {
		return Transition{}, &Error{Code: CodeInvalid, Message: "the payment is " + string(p.Status) + " and not stalled: " + whyNotReplayed(p.Status)}
	}
	t := Transition{Status: StatusWaiting, Reason: ReasonReplayed, Failure: p.Failure, ResetTries: true}
	if p.atStripe() {
		t.Status, t.InDoubt, t.AbsentAt = StatusUnknown, true, p.AbsentAt
	}
	return t, nil
}

// atStripe reports whether something of it may be at Stripe. A follow-up names the PaymentIntent of its charge from the start.
func (p Payment) atStripe() bool {
	return p.InDoubt || p.StripePaymentIntent != "" && !p.Kind.FollowUp()
}

func whyNotReplayed(s Status) string {
	switch {
	case s.Final():
		return "it has its outcome"
	case s.HasTicket():
		return "it is being worked on by itself"
	case s == StatusNeedsReview:
		return "a person decides, by `oncepay payments resolve`"
	default:
		return "it goes on by its customer's or its caller's action"
	}
}

// Discard gives a stalled payment up for good. It is pure. CodeInvalid for one that may have been charged, or that still goes on.
func Discard(p Payment) (Transition, error) {
	switch {
	case p.Status != StatusStalled && p.Status != StatusUnknown:
		return Transition{}, &Error{Code: CodeInvalid, Message: "the payment is " + string(p.Status) + " and not stalled: " + whyNotReplayed(p.Status)}
	case p.Status == StatusUnknown, p.atStripe():
		return Transition{}, &Error{Code: CodeInvalid, Message: "the payment may have been charged, so it is not discarded: wait until Stripe's records settle it; a stalled one is looked up by `oncepay dlq replay`"}
	}
	return Transition{Status: StatusCanceled, Reason: ReasonDiscarded, ClearSubmit: true}, nil
}

func refused(p Payment, as Status, why string) error {
	what := "payment"
	if p.Kind.FollowUp() {
		what = string(p.Kind)
	}
	return &Error{Code: CodeInvalid, Field: "as", Message: "a " + what + " that is " + string(p.Status) + " cannot be resolved as " + string(as) + ": " + why}
}

func withChoices(remedy string, choices []Status) string {
	if len(choices) == 0 {
		return remedy
	}
	if remedy != "" {
		remedy += "; "
	}
	return remedy + "it can be resolved as " + statusNames(choices)
}

func statusNames(list []Status) string {
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}
