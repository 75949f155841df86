package payments

import (
	"context"
	"time"
)

// A follow-up is a keyed request about a charge that is there already: a capture, a cancel or a refund. CONTRACT calls it an operation. It is a row in
// payments of its own kind, under a key and with a ticket of its own, so that all that keeps a charge from being made twice keeps it, too; what it
// changes of its charge is written in the transaction that records its end. The follow-ups of one charge run one after another, as accepted.

// FollowUp reports whether the kind is about a charge that is there already.
func (k Kind) FollowUp() bool { return k == KindCapture || k == KindCancel || k == KindRefund }

// FollowUp is a follow-up as it stands. Its own row has, beside what was asked for, what it is bound to since it was accepted: the amount in minor
// units (0 for a cancel) and the charge's currency, PaymentIntent, account and mode.
type FollowUp struct {
	Payment
	Number       int64  // its place among the follow-ups of its charge, from 1, in the order in which they were accepted
	StripeRefund string // re_…, once Stripe has named it
}

// FollowUpState is what the owner of a follow-up's ticket must know beside its claim.
type FollowUpState struct {
	Target       Payment // the charge
	StripeRefund string
	// Ahead says that a follow-up of the same charge that was accepted earlier has still to be worked on: it is received, waiting or unknown, or
	// waits for a person. One that Stripe is processing holds up nobody.
	Ahead bool
}

// FollowUpRequest asks for a follow-up. Members mean what they mean in AdmitRequest; nobody claims: the ticket is due at once.
type FollowUpRequest struct {
	Intent       Intent // PaymentID names the charge; All instead of an Amount asks for all that is left
	Lane         Lane
	Refused      *ValidationError
	ExistingOnly bool
	Announce     bool
	Suspect      *MessageOrigin
	// Allowed, when set, is asked once there is a connection and before anything new is stored; its error ends the request.
	Allowed func() error
}

// The verdicts that only follow-ups get: nothing was stored, and the key stays free. They rank after refused and exists, before stored.
const (
	VerdictPaymentUnknown Verdict = "payment_unknown"          // the tenant has no such charge
	VerdictInvalidState   Verdict = "invalid_state"            // the charge, or a follow-up of it that was accepted before, does not allow it
	VerdictAmountExceeds  Verdict = "amount_exceeds_available" // accepted amounts would exceed what is left
	VerdictAmountInvalid  Verdict = "amount_invalid"           // the charge's currency has no such amount
)

// FollowUpAdmission is the answer to a FollowUpRequest.
type FollowUpAdmission struct {
	Verdict  Verdict
	FollowUp FollowUp // the row that is there now, for exists, conflict and stored
	Differs  []string // for a conflict: the names of the fields that differ
	Why      string   // for payment_unknown, invalid_state, amount_exceeds_available and amount_invalid: what is wrong and what to do, safe for whoever asked
}

// OpenCancel is what a charge's owner must know of its cancels. The zero value: there is none.
type OpenCancel struct {
	// Open: one was accepted, and has not failed.
	Open bool
	// Forgotten: it may have succeeded before the database was restored. The charge has been through a rewind, so that the cancel may be the repeat of one
	// that nobody knows of any more.
	Forgotten bool
}

// FollowUps keeps follow-ups. Every method may also return CodeUnavailable.
type FollowUps interface {
	// AdmitFollowUp stores a follow-up and its ticket if the key is new and AcceptFollowUp allows it, deciding under a lock of the charge, and reads
	// whichever row is there. No other codes.
	AdmitFollowUp(ctx context.Context, r FollowUpRequest) (FollowUpAdmission, error)
	// FollowUpState reads what the owner of a follow-up must know. CodeNotFound.
	FollowUpState(ctx context.Context, p Payment) (FollowUpState, error)
	// CancelOpen reads whether a cancel of the charge is open. No codes of its own.
	CancelOpen(ctx context.Context, charge Payment) (OpenCancel, error)
	// WakeKeptBack makes due what is kept back (HoldsBack) although no cancel of it is open any more, some of it at a time, and returns how much. Whatever
	// ends a cancel does so itself; this is for what a fault, or a process from before that, has left. No codes of its own.
	WakeKeptBack(ctx context.Context) (woken int, err error)
	// RecordFollowUp is Record for a follow-up. With Transition.Target it changes the charge in the same transaction, locking tickets before payments:
	// Target is asked again with the charge as it is locked. CodeTicketLost; CodeTargetMoved: the charge does not allow the change as it stands now, and
	// nothing was written.
	RecordFollowUp(ctx context.Context, r Recording) (Recorded, error)
}

// FollowUpReader shows follow-ups to whoever asks. Every method may also return CodeUnavailable.
type FollowUpReader interface {
	// FindFollowUp reads one follow-up by id. CodeNotFound, also for what is a charge or a batch.
	FindFollowUp(ctx context.Context, tenantID string, id ID) (FollowUp, error)
	// FollowUpsOf lists the follow-ups of a charge of one kind, "" for all, in the order in which they were accepted. CodeNotFound: no such charge.
	FollowUpsOf(ctx context.Context, tenantID string, charge ID, kind Kind) ([]FollowUp, error)
}

// FollowUpGateway speaks to Stripe for follow-ups. Payment of a submission is the follow-up's own row: its StripePaymentIntent is the charge's. What
// each call returns is as Gateway says. A cancel is Gateway.Cancel, and a capture's or cancel's PaymentIntent is read by Gateway.Retrieve.
type FollowUpGateway interface {
	// Capture takes Payment.Amount of what is held. It shows ObservedAnswer with the PaymentIntent as it stands then.
	Capture(ctx context.Context, s Submission) Observation
	// Refund gives Payment.Amount back. It shows ObservedRefund with the refund.
	Refund(ctx context.Context, s Submission) Observation
	// LookRefunds lists all refunds of the PaymentIntent. It shows ObservedRecords with those in Refunds whose metadata name this follow-up and our
	// namespace, ObservedObject without one when Stripe knows no such PaymentIntent, or ObservedNoRecords. progress is as in Look.
	LookRefunds(ctx context.Context, p Payment, progress func() error) Observation
	// RetrieveRefund reads a refund again. It shows ObservedRefund.
	RetrieveRefund(ctx context.Context, p Payment, refundID string) Observation
}

// StripeRefundStatus is the status of a refund in Stripe's words.
type StripeRefundStatus string

// Stripe's statuses of refunds (docs.stripe.com/api/refunds/object).
const (
	RefundPending        StripeRefundStatus = "pending"
	RefundRequiresAction StripeRefundStatus = "requires_action"
	RefundSucceeded      StripeRefundStatus = "succeeded"
	RefundFailed         StripeRefundStatus = "failed"
	RefundCanceled       StripeRefundStatus = "canceled"
)

// Refund is what we read of Stripe's object of that name.
type Refund struct {
	ID            string // re_…, or pyr_…
	Status        StripeRefundStatus
	Amount        int64
	Currency      string
	PaymentIntent string
	Created       time.Time
	Metadata      map[string]string
	FailureReason string // of failed and canceled ones, in Stripe's words
}

// TargetChange is what the end of a follow-up does to its charge. It is pure, and is asked with the charge as it stands under a lock; the status of
// the transition may be the one that the charge has. CodeTargetMoved.
type TargetChange func(charge Payment) (Transition, error)
