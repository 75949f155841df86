package payments

import (
	"slices"
	"time"
)

// RewindState is where a rewind stands.
type RewindState string

// The states of a rewind.
const (
	RewindRunning   RewindState = "running"
	RewindCompleted RewindState = "completed"
	RewindFailed    RewindState = "failed"
)

// RewindStep is a part of a rewind. Each may be repeated: a rewind whose runner died goes on with the step that it was at.
type RewindStep string

// The steps, in their order.
const (
	RewindSettle  RewindStep = "settle"  // wait until nobody can be sending any more
	RewindStripe  RewindStep = "stripe"  // list what Stripe has, and keep it
	RewindTickets RewindStep = "tickets" // whatever is to be worked on becomes in doubt
	RewindOthers  RewindStep = "others"  // and what was given up, or waits for a person
	RewindOpen    RewindStep = "open"    // read again what waits for its customer or for a capture
	RewindStreams RewindStep = "streams" // store the payments of messages that the database has forgotten
	RewindAgain   RewindStep = "again"   // and the captures, cancels and refunds that came before what they are about
	RewindFound   RewindStep = "found"   // payments that came meanwhile and that Stripe knows
	RewindAccept  RewindStep = "accept"  // mark the database anew
)

// RewindSteps lists the steps in order.
func RewindSteps() []RewindStep {
	return []RewindStep{RewindSettle, RewindStripe, RewindTickets, RewindOthers, RewindOpen, RewindStreams, RewindAgain, RewindFound, RewindAccept}
}

// Next is the step after this one; "" after the last.
func (s RewindStep) Next() RewindStep {
	all := RewindSteps()
	for i := range all[:len(all)-1] {
		if all[i] == s {
			return all[i+1]
		}
	}
	return ""
}

// RewindMargin is by how much more than it is told a rewind looks back: clocks differ, and a mark is up to a second old.
const RewindMargin = 10 * time.Minute

// RewindProgress is how far a rewind is, and what it came to. Counts of steps that were repeated after a crash may be off.
type RewindProgress struct {
	Step RewindStep `json:"step"`
	// Tenant and ID are where a step over rows stands.
	Tenant string `json:"tenant,omitempty"`
	ID     string `json:"id,omitempty"`
	// By stream: the next message that is read, the last one, and the first that must be read once more when all have been.
	Next   map[string]uint64 `json:"next,omitempty"`
	Bounds map[string]uint64 `json:"bounds,omitempty"`
	Again  map[string]uint64 `json:"again,omitempty"`

	Objects   int `json:"objects"`   // PaymentIntents of ours that Stripe has
	Doubted   int `json:"doubted"`   // payments that are looked up before anything is sent for them
	Corrected int `json:"corrected"` // payments that had ended otherwise than Stripe says
	Adopted   int `json:"adopted"`   // payments that waited for their customer or a capture, and had gone on at Stripe
	Disagrees int `json:"disagrees"` // payments whose end Stripe contradicts, and that a person must look at
	Messages  int `json:"messages"`  // messages that were read again
	Restored  int `json:"restored"`  // payments that were stored again from their messages
	Letters   int `json:"letters"`   // messages that became dead letters again
	// Tenants that messages or Stripe name and that the database does not have.
	Unknown []string `json:"unknown_tenants,omitempty"`
	// Note is what somebody should know.
	Note string `json:"note,omitempty"`
}

// Rewind is a job by which a database learns again what it has forgotten: it reads Stripe and the streams from a time on. While it runs nothing
// is submitted.
type Rewind struct {
	ID         int64
	State      RewindState
	Since      time.Time
	Actor      string
	Reason     string
	Progress   RewindProgress
	Detail     string // why it stands still, or failed
	CreatedAt  time.Time
	UpdatedAt  time.Time
	FinishedAt time.Time // zero while it runs
	// HeldUntil names the hold of whoever runs it: each of his writes moves it, and none has an effect once it is another's.
	HeldUntil time.Time
}

// StripeObject is a PaymentIntent of ours as Stripe's listing has it.
type StripeObject struct {
	TenantID  string
	PaymentID ID
	Account   Account
	Intent    PaymentIntent
}

// ForgottenPayment is a payment that a message asked for, which the database may not have any more.
type ForgottenPayment struct {
	Intent   Intent
	Lane     Lane
	StoredAt time.Time // when its message was stored
}

// Restored is what became of forgotten payments.
type Restored struct {
	Stored    int              // payments that the database did not have
	Conflicts map[int][]string // by index: those whose key names another request, and in which fields
	Unknown   map[int]string   // by index: those whose tenant the database does not have
	// Refused are captures, cancels and refunds, by index, that are not stored again, and why (AcceptForgotten): their payment is not there, has
	// ended otherwise, or never had that much. Each is a dead letter then, whose replay asks again.
	Refused map[int]string
}

// Orphan reports whether the payment is a batch's child whose batch is not there: it was stored again from its message alone. Nothing is ever sent
// for it before its batch has come again.
func (p Payment) Orphan() bool { return p.BatchID == "" && ReservedKey(p.IdempotencyKey) }

// Contradicts reports whether what Stripe's listing shows of a payment that nobody works on is more than the payment says of itself: it must be
// looked at then, and corrected.
func (o StripeObject) Contradicts(p Payment) bool {
	switch {
	case p.Kind == KindBatch || p.Status.HasTicket() || p.Status == StatusStalled || p.Status == StatusNeedsReview:
		return false
	case p.Status == StatusSucceeded: // another one was charged too, or in its place; or the one that it names, which a person may have named, was not
		if o.Intent.ID != p.StripePaymentIntent {
			return o.Intent.Status.movesMoney()
		}
		return o.Intent.Status != StripeSucceeded
	case p.Status.Final():
		return o.Intent.Status.movesMoney()
	case p.Status == StatusRequiresCapture:
		return o.Intent.Status != StripeRequiresCapture
	default: // requires_action
		return o.Intent.Status != StripeRequiresAction && o.Intent.Status != StripeRequiresPaymentMethod
	}
}

// unknownTenantsMax is how many tenants that are not there are named.
const unknownTenantsMax = 50

// Misses notes a tenant that is named somewhere and that the database does not have.
func (p *RewindProgress) Misses(tenantID string) {
	if len(p.Unknown) < unknownTenantsMax && !slices.Contains(p.Unknown, tenantID) {
		p.Unknown = append(p.Unknown, tenantID)
	}
}
