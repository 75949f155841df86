package payments

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// Clock tells the wall-clock time. Production uses the system's; tests share one with the simulator.
type Clock interface {
	Now() time.Time
}

// AdmitRequest is one request to store a payment. Validation comes first and is pure, so a request that is invalid is only looked up.
type AdmitRequest struct {
	Intent  Intent
	Lane    Lane
	Claim   bool          // give the caller the ticket at once, if the account's rate budget has room
	Token   Token         // random, one per request; needed when Claim is set
	Lease   time.Duration // until when a claimed ticket is the caller's
	Account Account       // pinned to the row with the first token; needed when Claim is set
	// Refused, when set, says that the intent must not be inserted; an existing row is still compared with it.
	Refused *ValidationError
	// ExistingOnly is for keys that only a batch may create: insert nothing, attach if the row is there.
	ExistingOnly bool
	// Announce leaves an outbox item, in the same transaction, that publishes the intent on its lane's stream. Only for rows that are inserted.
	Announce bool
	// Origin of the message, so that the row of a suspect message is deleted in the same transaction. Nil: none.
	Suspect *MessageOrigin
}

// Verdict is the one answer that an AdmitRequest gets. Where several apply, the order here is the rank: conflict, refused, exists, admitted.
type Verdict string

// The verdicts of Admit.
const (
	VerdictConflict      Verdict = "key_reused"     // the key names another request; Differs says in which fields
	VerdictRefused       Verdict = "refused"        // invalid, and no row disagrees with it
	VerdictTenantUnknown Verdict = "tenant_unknown" // no such tenant
	VerdictExists        Verdict = "exists"         // the row is there already and its ticket is not ours
	VerdictAbsent        Verdict = "absent"         // ExistingOnly, and no row is there
	VerdictStored        Verdict = "stored"         // inserted, with a ticket due now that nobody has
	VerdictClaimed       Verdict = "claimed"        // inserted, and the ticket is the caller's
)

// Admission is the answer to an AdmitRequest.
type Admission struct {
	Verdict Verdict
	Payment Payment  // the row that is there now, for exists, conflict, stored and claimed
	Claim   Claim    // for claimed
	Differs []string // for a conflict: the names of the fields that differ
	// Wait is set when a ticket was stored and not given for want of budget: the time until the account's budget has room again.
	Wait time.Duration
}

// TakeRequest asks for due tickets.
type TakeRequest struct {
	Lane    Lane
	Limit   int // at most so many claims
	Lease   time.Duration
	Account Account // the installation's own: for payments that have none pinned yet, of tenants without a way to Stripe of their own
	// Except are accounts to which the caller sends nothing now: tickets of tenants whose account is one of them are passed over.
	Except []Account
	// Only, when set, asks for tickets of tenants of this account alone: the probe of an account that may be working again.
	Only *Account
	// Alone asks for one ticket that must be worked on alone, and nothing else, whatever the limit; without it such tickets are passed over. The
	// caller is alone before it asks: a token that only waits for others to finish would count as abandoned if one of them ended the process.
	Alone bool
}

// Taking is the answer to a TakeRequest.
type Taking struct {
	Claims []Claim
	// Wait is set when due tickets of the lane were left for want of budget, or may have been left for a pause: the time until one of their
	// accounts has room again, or in which to ask again.
	Wait time.Duration
	// Alone says that there are due tickets that must be worked on alone, for TakeRequest.Alone.
	Alone bool
}

// Recording writes what an owner found out.
type Recording struct {
	Claim      Claim
	Transition Transition
	Delay      time.Duration // until the ticket is due again, while Transition.Status.HasTicket
	At         time.Time
}

// Recorded is what a Recording left behind.
type Recorded struct {
	Payment Payment
	// Sequence is 0 when the transition was quiet: no timeline entry and no event.
	Sequence int64
}

// Store keeps payments and their tickets. Every method may also return CodeUnavailable: then nothing is known of what was committed, and
// repeating the same call with the same token settles it.
type Store interface {
	// Admit stores a payment and its ticket if the key is new, and reads whichever row is there. No other codes.
	Admit(ctx context.Context, r AdmitRequest) (Admission, error)
	// Take moves due tickets to now + lease under fresh tokens, tenants in turn, as far as their accounts' budgets have room; the only
	// takeover there is. A ticket whose payment has no account pinned and whose tenant's account is not known yet is given all the same,
	// without an account: nothing may be sent for it. No other codes.
	Take(ctx context.Context, r TakeRequest) (Taking, error)
	// Throttle halves the rate of the account's budget, which then grows back to the setting; Stripe said 429. Several in one second are
	// one. Without a rate set it does nothing. No other codes.
	Throttle(ctx context.Context, a Account) error
	// Extend moves the end of a lease to now + lease and writes the claim's Abandoned, to which one is added should this owner vanish; with
	// submitting it commits last_submit_at before a send. CodeTicketLost.
	Extend(ctx context.Context, c Claim, lease time.Duration, submitting bool) (Claim, error)
	// Record writes an outcome, its timeline entry and its event, and deletes the ticket or sets its next due time, only if the claim's
	// token is still in the ticket. CodeTicketLost: it is not, and nothing was written.
	Record(ctx context.Context, r Recording) (Recorded, error)
	// Evidence applies what somebody other than the owner learnt: it locks the ticket first and tears it up or replaces it, so that a late
	// owner changes nothing. decide sees the payment as it stands. CodeNotFound; and whatever decide returns.
	Evidence(ctx context.Context, tenantID string, id ID, decide func(Payment) (Transition, error)) (Recorded, error)
	// BuryPayment dead-letters a payment whose ticket the claim holds and sets its status in the same transaction: unknown with its ticket
	// due after the delay if a send is in doubt, else stalled. CodeTicketLost.
	BuryPayment(ctx context.Context, c Claim, letter DeadLetter, delay time.Duration) error
	// BuryMessage commits a dead letter for a message; the same message again is the same dead letter.
	BuryMessage(ctx context.Context, letter DeadLetter) error
	// Suspect commits that a message which was delivered often and never admitted is about to be started, and returns how often that has
	// happened, this time included.
	Suspect(ctx context.Context, letter DeadLetter) (starts int, err error)
	// Find reads one payment by id. CodeNotFound.
	Find(ctx context.Context, tenantID string, id ID) (Payment, error)
}

// Batches keeps batches. Every method may also return CodeUnavailable.
type Batches interface {
	// AdmitBatch stores a batch, its children with their tickets, and the outbox items that publish them on the bulk lane, in one transaction,
	// if the key is new; else it compares. A child's row that is there already is taken only if it asks for the same. No other codes.
	AdmitBatch(ctx context.Context, r BatchRequest) (BatchAdmission, error)
	// CompleteBatches tells that batches are complete, by one event each, ever: those of refs that are not told yet and whose children all exist
	// and are final. It returns how many it told. No other codes.
	CompleteBatches(ctx context.Context, refs []BatchRef) (told int, err error)
	// OpenBatches lists batches whose completion was not told yet, after the one given, in a fixed order; fewer than limit: these are the last.
	OpenBatches(ctx context.Context, after BatchRef, limit int) ([]BatchRef, error)
}

// Submission is everything that a send needs; the header and the form body are pure functions of it (invariant I5).
type Submission struct {
	Payment   Payment
	StripeKey string
	// MayLeave is asked right before the first byte leaves; an error holds the request back.
	MayLeave func() error
}

// Gateway speaks to Stripe. It returns observations, never errors: whatever happens on the way proves something or proves nothing.
type Gateway interface {
	// Account is the account and mode that the tenant's payments go to, as Stripe itself named it. CodeUnavailable: it is not known yet and
	// could not be read now; CodeInvalid: the tenant's way to Stripe is set wrongly. Then nothing is sent for the tenant from here.
	Account(ctx context.Context, tenantID string) (Account, error)
	// Submit creates and confirms the PaymentIntent. Exactly one HTTP request leaves, or none.
	Submit(ctx context.Context, s Submission) Observation
	// Look lists Stripe's records of the payment. progress is called before every page; an error from it ends the look-up.
	Look(ctx context.Context, p Payment, progress func() error) Observation
	// Retrieve reads the payment's PaymentIntent again.
	Retrieve(ctx context.Context, p Payment) Observation
	// Cancel cancels the payment's PaymentIntent (s.Payment.StripePaymentIntent) under the submission's key, so that its customer cannot confirm
	// it any more. It shows ObservedObject with the PaymentIntent as it stands then, canceled or not: also when Stripe refuses because it has
	// succeeded meanwhile. An ObservedObject without one says that Stripe has none of that name. All else is what a submit may show of a call
	// that failed. One HTTP request leaves, or none.
	Cancel(ctx context.Context, s Submission) Observation
}

// OutboxKind says what an outbox item is a message about.
type OutboxKind string

// The kinds of outbox items.
const (
	OutboxEvent      OutboxKind = "event"       // an outcome event
	OutboxDeadLetter OutboxKind = "dead_letter" // the copy of a dead letter
	OutboxIntent     OutboxKind = "intent"      // the copy of an intent that was accepted by other ways than its stream: a nudge and a journal
)

// OutboxItem is one message that a committed transaction wants sent, at least once.
type OutboxItem struct {
	ID        int64
	Row       int64 // in which row of its table the store keeps it, for whoever looks it up; 0: the one of its ID
	Kind      OutboxKind
	TenantID  string // "" for a dead letter whose tenant is not known
	Lane      Lane   // for intents: whose stream
	EventType string // for events: oncepay.payment.<status>
	EventID   string // stable per transition
	Body      []byte
}

// Place names an item to people: its kind, and the row that it stands in.
func (i OutboxItem) Place() string {
	return fmt.Sprintf("outbox row %d (%s)", cmp.Or(i.Row, i.ID), i.Kind)
}

// Outbox is what a relay empties. A store has one for events and dead letters and one for the intents of each lane, so that a stream that is full
// holds up nobody else. Numbers of items are unique within one outbox.
type Outbox interface {
	// Pending returns items, oldest first, that nobody has been given within the hold; they are the caller's for that long. There are fewer than limit
	// only if there are no more; a store that keeps several items together may return some more.
	Pending(ctx context.Context, limit int, hold time.Duration) ([]OutboxItem, error)
	// Sent deletes items that are stored in their stream.
	Sent(ctx context.Context, ids []int64) error
}
