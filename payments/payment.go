package payments

import (
	"time"
)

// Failure is why Stripe refused a payment, in Stripe's own words.
type Failure struct {
	Code        string
	DeclineCode string
	Message     string
}

// Payment is the stored state of one keyed request.
type Payment struct {
	Intent
	ID             ID
	Lane           Lane
	Status         Status // never StatusProcessing: that is a ticket with a token, see ShownStatus
	Reason         string // why it waits or ended, a stable word
	RequestVersion int    // which form of the request to Stripe the intent is bound to
	Failure        *Failure

	// FirstSubmitAt and LastSubmitAt are committed with the token, before a send. InDoubt says that an owner was given the right to send and
	// no definite answer has been recorded since: a charge may exist that we know nothing of.
	FirstSubmitAt time.Time
	LastSubmitAt  time.Time
	InDoubt       bool
	AbsentAt      time.Time // first complete listing without it, at least 24 h after the last send

	Tries    int   // answers that proved that nothing was executed; at most the setting's
	Rounds   int   // attempts and looks since the last progress; only the backoff depends on it
	Sequence int64 // number of the newest timeline entry

	StripePaymentIntent string
	StripeCharge        string
	StripeAccount       string // pinned with the first token
	Livemode            bool
	AmountCaptured      int64
	AmountRefunded      int64
	BatchID             string

	CreatedAt   time.Time
	UpdatedAt   time.Time
	FinalizedAt time.Time // zero until the status is final

	// NextAttemptAt and Owned are read from the ticket, never stored.
	NextAttemptAt time.Time
	Owned         bool
}

// ShownStatus is the status that people see: a payment whose ticket somebody holds is processing. An unknown or pending one stays what it
// is, since that is what the person asking must know.
func (p Payment) ShownStatus() Status {
	if p.Owned && (p.Status == StatusReceived || p.Status == StatusWaiting) {
		return StatusProcessing
	}
	return p.Status
}

// Expired reports whether the intent's expires_at has passed.
func (p Payment) Expired(now time.Time) bool {
	return !p.ExpiresAt.IsZero() && !now.Before(p.ExpiresAt)
}

// Entry is one line of a payment's timeline.
type Entry struct {
	Sequence int64
	At       time.Time
	Type     string // the event's type: oncepay.payment.<status>
	Status   Status
	Reason   string
}
