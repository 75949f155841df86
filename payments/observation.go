package payments

import "time"

// ObservationKind sorts everything that a call to Stripe may end in by what it proves, not by how it looks on the wire.
type ObservationKind string

// What a submit, a retrieve or a look-up may show.
const (
	// ObservedAnswer: a 2xx with a PaymentIntent, to a submit.
	ObservedAnswer ObservationKind = "answer"
	// ObservedDecline: a 402; Stripe made a PaymentIntent and could not charge it.
	ObservedDecline ObservationKind = "decline"
	// ObservedInvalid: another 4xx that says the request can never be executed as it is.
	ObservedInvalid ObservationKind = "invalid"
	// ObservedUnauthorized: 401 or 403; our key is wrong, not the payment.
	ObservedUnauthorized ObservationKind = "unauthorized"
	// ObservedKeyConflict: 400 idempotency_error; a request with other parameters was sent under our key before.
	ObservedKeyConflict ObservationKind = "key_conflict"
	// ObservedInUse: 409 idempotency_key_in_use; a request under our key is being executed now.
	ObservedInUse ObservationKind = "in_use"
	// ObservedLocked: 429 lock_timeout; an object was locked, nothing was executed.
	ObservedLocked ObservationKind = "locked"
	// ObservedRateLimited: 429; refused before execution.
	ObservedRateLimited ObservationKind = "rate_limited"
	// ObservedNotSent: no byte of the request left, since no connection was obtained.
	ObservedNotSent ObservationKind = "not_sent"
	// ObservedHeldBack: our own last check before the write refused it: the lease, the re-send window or expires_at; no byte left.
	ObservedHeldBack ObservationKind = "held_back"
	// ObservedAccountUnknown: the Stripe account of the payment's tenant cannot be used, since its key or its account could not be read; no byte left.
	ObservedAccountUnknown ObservationKind = "account_unknown"
	// ObservedForeignAccount: the payment is pinned to another Stripe account or mode than the one we are connected to; no byte left.
	ObservedForeignAccount ObservationKind = "foreign_account"
	// ObservedUnclear: bytes were sent and nothing that followed says what became of them: time-outs, resets, 5xx, garbage.
	ObservedUnclear ObservationKind = "unclear"

	// ObservedRecords: a complete listing of Stripe's records; Found has every PaymentIntent of ours that is in it.
	ObservedRecords ObservationKind = "records"
	// ObservedNoRecords: the listing could not be completed; it proves nothing.
	ObservedNoRecords ObservationKind = "no_records"
	// ObservedObject: a retrieved PaymentIntent; without one: Stripe has none of that name.
	ObservedObject ObservationKind = "object"
	// ObservedRefund: a refund, made or retrieved; without one: Stripe has none of that name.
	ObservedRefund ObservationKind = "refund"
)

// FollowUpObservationKinds lists all kinds that a call for a follow-up may show.
func FollowUpObservationKinds() []ObservationKind { return append(ObservationKinds(), ObservedRefund) }

// ObservationKinds lists all kinds that a call for a charge may show.
func ObservationKinds() []ObservationKind {
	return []ObservationKind{
		ObservedAnswer, ObservedDecline, ObservedInvalid, ObservedUnauthorized, ObservedKeyConflict, ObservedInUse, ObservedLocked,
		ObservedRateLimited, ObservedNotSent, ObservedHeldBack, ObservedAccountUnknown, ObservedForeignAccount, ObservedUnclear, ObservedRecords,
		ObservedNoRecords, ObservedObject,
	}
}

// StripeStatus is the status of a PaymentIntent in Stripe's words (API 2023-10-16).
type StripeStatus string

// Stripe's statuses.
const (
	StripeSucceeded             StripeStatus = "succeeded"
	StripeProcessing            StripeStatus = "processing"
	StripeRequiresCapture       StripeStatus = "requires_capture"
	StripeRequiresAction        StripeStatus = "requires_action"
	StripeRequiresConfirmation  StripeStatus = "requires_confirmation"
	StripeRequiresPaymentMethod StripeStatus = "requires_payment_method"
	StripeCanceled              StripeStatus = "canceled"
)

// movesMoney reports whether the customer's money was taken, is held, or is on its way.
func (s StripeStatus) movesMoney() bool {
	return s == StripeSucceeded || s == StripeRequiresCapture || s == StripeProcessing
}

// PaymentIntent is what we read of Stripe's object of that name.
type PaymentIntent struct {
	ID             string
	Status         StripeStatus
	Amount         int64
	AmountReceived int64
	Currency       string
	Customer       string
	LatestCharge   string
	Livemode       bool
	Created        time.Time
	Metadata       map[string]string
	LastError      *Failure // last_payment_error
}

// Observation is what one call to Stripe showed.
type Observation struct {
	Kind    ObservationKind
	Account Account // the account that was asked

	Object   *PaymentIntent  // for an answer, a decline (when it named one) and an object
	Found    []PaymentIntent // for records: those whose metadata name this payment and our namespace
	Refund   *Refund         // for a refund
	Refunds  []Refund        // for records of a PaymentIntent's refunds: those whose metadata name this follow-up and our namespace
	Replayed bool            // Idempotent-Replayed: the answer is the stored one of the first send
	Failure  *Failure

	HTTPStatus int
	RequestID  string        // Stripe's Request-Id, for support
	RetryAfter time.Duration // at least so long; zero: not said
	// ShouldRetry is what Stripe says of trying again. It changes when something is done next, never what an observation means.
	ShouldRetry RetryAdvice
	// Trouble is set for no_records when Stripe, or the way to it, is why the records could not be read, and not this payment or this process.
	Trouble bool
	// LacksRight is set when the key was refused for the want of a right that charges do not need, so that it is no word on them.
	LacksRight bool
	Detail     string // what happened, in words safe for logs and the timeline's reason; never a body
}

// limited reports whether Stripe refused the call for coming too often, whatever it asked for. A lock is another matter.
func (o Observation) limited() bool {
	return o.Kind == ObservedRateLimited || o.HTTPStatus == 429 && o.Kind != ObservedLocked
}

// unreadable reports whether Stripe's records could not be read since it refuses our key for that, which only a person can mend.
func (o Observation) unreadable() bool {
	return o.Kind == ObservedNoRecords && (o.LacksRight || o.healthOfReading() == HealthRefused)
}

// Account is a Stripe account and its mode, as read from Stripe at start.
type Account struct {
	ID       string
	Livemode bool
}
