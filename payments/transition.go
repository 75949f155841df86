package payments

import (
	"math/rand/v2"
	"strings"
	"time"
)

// Reasons why a payment stands where it does: stable words of the timeline and of Payment.Reason.
const (
	ReasonNotSent         = "not_sent"
	ReasonHeldBack        = "held_back"
	ReasonAccountUnknown  = "account_unknown"
	ReasonAccountChanged  = "account_changed"
	ReasonRateLimited     = "rate_limited"
	ReasonLocked          = "lock_timeout"
	ReasonAuthentication  = "authentication"
	ReasonKeyConflict     = "key_conflict"
	ReasonKeyInUse        = "key_in_use"
	ReasonNoAnswer        = "no_answer"
	ReasonConfirming      = "confirming"
	ReasonLookingUp       = "looking_up"
	ReasonAbsent          = "absent"
	ReasonInvalidRequest  = "invalid_request"
	ReasonDisagrees       = "stripe_disagrees"
	ReasonSeveral         = "several_payment_intents"
	ReasonTaken           = "payment_intent_taken" // a person has said that its PaymentIntent paid for another payment
	ReasonUnknownStatus   = "unknown_stripe_status"
	ReasonExpired         = "expired"
	ReasonStripeCanceled  = "canceled_at_stripe"
	ReasonProcessing      = "processing_at_stripe"
	ReasonMissingAtStripe = "missing_at_stripe"
	ReasonAccountUnclear  = "account_unclear" // in doubt, and nobody knows on which account it may have been sent
	// ReasonCancelling: declined on session, and its PaymentIntent, which the customer could still confirm, is being cancelled.
	ReasonCancelling = "cancelling_declined"
	// ReasonCancelRefused: Stripe does not cancel it, and its customer could still confirm it.
	ReasonCancelRefused = "cancel_refused"
	ReasonReplayed      = "replayed"             // an operator took it up again
	ReasonDiscarded     = "discarded"            // an operator gave it up
	ReasonResolved      = "resolved_by_operator" // a person decided; what the person said of it follows
	ReasonRewound       = "rewound"              // the database was restored: what was sent since is not known
	ReasonPaused        = "paused"               // shown, never stored: an operator holds it back

	// Of captures, cancels and refunds.
	ReasonBehind            = "behind_another"      // one of the same payment that was accepted before has still to be worked on
	ReasonPaymentOpen       = "payment_open"        // what becomes of the payment itself is not known yet
	ReasonPaid              = "paid"                // of a cancel: the money has been taken
	ReasonPaymentEnded      = "payment_ended"       // the payment has ended without any money: nothing is left to do
	ReasonNotCaptured       = "not_captured"        // of a refund: nothing was taken
	ReasonCapturedOtherwise = "captured_otherwise"  // of a capture: another amount has been taken, and not by this one
	ReasonSeveralRefunds    = "several_refunds"     // Stripe has more than one refund of it
	ReasonRefundFailed      = "refund_failed"       // Stripe could not give it back, and does not say why
	ReasonCanceledOnRequest = "canceled_on_request" // of a payment: somebody asked for its cancel
)

// Transition is what Decide makes of an observation: the next stored state, whether and when somebody must act again, and what is told.
type Transition struct {
	Status  Status
	Reason  string
	Failure *Failure

	// Object is the PaymentIntent that the payment has from now on, when one is known.
	Object *PaymentIntent

	InDoubt bool
	// ClearSubmit takes back the first_submit_at that this owner set: nothing left this process, or absence is proven.
	ClearSubmit bool
	AbsentAt    time.Time

	CountTry bool // the answer proved that nothing was executed
	// ResetTries gives back all tries: an operator takes the payment up again, or its charge was answered and its cancel begins.
	ResetTries bool
	// Rounds is stored; the delay before the next step grows with it.
	Rounds int
	// Delay is meaningful while Status.HasTicket.
	Delay Delay

	// DeadLetter is set when the tries are used up.
	DeadLetter Reason

	// Refund is what a refund is at Stripe from now on, when that is known.
	Refund *Refund
	// Refunded is added to the charge's amount_refunded: for a TargetChange alone. Nothing is told of it: the refund has an event of its own.
	Refunded int64
	// Target, of a follow-up's transition, is what it does to the charge; nil: nothing.
	Target TargetChange

	// ThenSend: record nothing; send the request again under the same key at once.
	ThenSend bool
}

// Delay says how long to wait before the next step: at least AtLeast, and else a random time that grows with Step.
type Delay struct {
	AtLeast time.Duration
	Step    int  // 0: as soon as may be
	Soon    bool // somebody else is at it or a first look is due: no longer than SoonMax
	Long    bool // only a person or a long time can mend it: the cap
}

// RetryAfterMax bounds what a Retry-After header may ask for: a wrong one must not put a payment to sleep for years.
const RetryAfterMax = time.Hour

// ErrTaken: a person has said that the PaymentIntent which evidence shows paid for another payment, so that a payment which has ended is left as it is.
var ErrTaken = Errorf(CodeInvalid, "a person has given its PaymentIntent to another payment")

// Taken is what becomes of a payment whose PaymentIntent a person has given to another one (owner; "" where this tenant must not know of it): Stripe
// says one thing and a person another, and one charge must not pay for two orders. What a person had to look at anyway is told with it.
func (t Transition) Taken(owner string) Transition {
	var more []string
	if owner != "" {
		more = append(more, "by "+owner)
	}
	if t.Status == StatusNeedsReview {
		more = append(more, t.Reason)
	}
	reason := ReasonTaken
	if len(more) > 0 {
		reason += ": " + strings.Join(more, "; ")
	}
	return review(reason, t.Object)
}

// Adopts reports whether a payment takes over a PaymentIntent by the transition without anybody being told whether a person has given it to another one.
func (t Transition) Adopts() bool {
	return t.Object != nil && !strings.HasPrefix(t.Reason, ReasonTaken)
}

// Quiet reports whether a transition would tell nobody anything new, so that it leaves no timeline entry and no event. The row and the ticket are
// written all the same: InDoubt, AbsentAt and Rounds must be stored, or absence would never be proven.
func (t Transition) Quiet(p Payment) bool {
	return t.Status == p.Status && t.Reason == p.Reason && !t.CountTry && !t.ResetTries && t.Object == nil && t.DeadLetter == ""
}

// Backoff is the capped exponential backoff with full jitter between steps.
type Backoff struct {
	First   time.Duration // default 0.5 s
	Max     time.Duration // default 5 min
	SoonMax time.Duration // default 2 s
}

// BackoffDefault is used where nothing else is set.
var BackoffDefault = Backoff{First: 500 * time.Millisecond, Max: 5 * time.Minute, SoonMax: 2 * time.Second}

// After returns the time to wait. The random source is the caller's; rnd returns a number in [0, n).
func (b Backoff) After(d Delay, rnd func(n int64) int64) time.Duration {
	if rnd == nil {
		rnd = rand.Int64N
	}
	var wait time.Duration
	switch {
	case d.Long:
		wait = b.Max/2 + time.Duration(rnd(int64(b.Max/2)+1))
	case d.Step <= 0:
	default:
		ceiling := b.Max
		if shift := d.Step - 1; shift < 63 && b.First <= b.Max>>shift {
			ceiling = b.First << shift
		}
		if d.Soon {
			ceiling = min(ceiling, b.SoonMax)
		}
		wait = time.Duration(rnd(int64(ceiling) + 1))
	}
	return max(wait, d.AtLeast)
}
