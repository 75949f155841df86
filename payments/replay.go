package payments

import (
	"context"
	"time"
)

// NewReplay asks for a replay of the open dead letters that a filter chooses now.
type NewReplay struct {
	Filter LetterFilter
	// Set changes members of the messages first, as text; for those that never claimed a row.
	Set   map[string]string
	Rate  float64 // items a second; 0: as fast as they can be issued
	Limit int     // at most so many, those seen first; 0: all
	Operation
}

// RefusedLetter is a dead letter that an operation left as it was.
type RefusedLetter struct {
	LetterID string
	Why      string
}

// DiscardPreview is what discarding would come to now.
type DiscardPreview struct {
	Count    int
	Settled  int              // of Count: their payment has its outcome, and keeps it
	Canceled int              // of Count: their stalled payment is canceled
	Refused  []RefusedLetter  // of Count: their payment may have been charged or goes on, or a replay has them
	Unpriced int              // of Count: nobody can tell how much money they are about
	Amount   map[string]int64 // of Count, by currency, in minor units
}

// DiscardResult is what discarding came to.
type DiscardResult struct {
	Discarded int
	Canceled  int // of Discarded: those whose stalled payment was canceled
	Refused   []RefusedLetter
}

// AuditFilter chooses lines of the audit; empty members let everything through.
type AuditFilter struct {
	TenantID string
	Actor    string
	Action   string
	Target   string
	Since    time.Time // at in [Since, Until)
	Until    time.Time
}

// ReplayWork is an item of a replay that somebody holds in order to issue it.
type ReplayWork struct {
	ReplayID string
	Letter   DeadLetter // in full
	Set      map[string]string
	// Starts is how often its message was begun before: it did not end, or the process that began it did.
	Starts int
	// HeldUntil tells this holding from every other.
	HeldUntil time.Time
}

// OfMessage reports whether the item is a message that has to be read again; else it is a payment that is taken up again.
func (w ReplayWork) OfMessage() bool { return w.Letter.Origin.Stream != "" }

// ReplayClaims is an answer to a runner that asks for work.
type ReplayClaims struct {
	Work []ReplayWork
	// Open reports whether any replay has items without a result; Wait is when the next ones may be issued, by their rate.
	Open bool
	Wait time.Duration
}

// ReplayOutcome is what issuing a message's item came to.
type ReplayOutcome struct {
	// PaymentID is the payment that its message stands for now, to be watched; Result is "" then.
	PaymentID ID
	Result    ReplayResult
	Status    Status
	Detail    string
	// Reason and Message, when set, are the dead letter's from now on.
	Reason  Reason
	Message string
}

// Replays are the operators' jobs, as their runners see them. Every method may also return CodeUnavailable; then the same item is claimed again
// when its holding ends, by whoever comes first.
type Replays interface {
	// ClaimReplayItems holds items of running replays, as many as their rates allow now, for a while.
	ClaimReplayItems(ctx context.Context, limit int, hold time.Duration) (ReplayClaims, error)
	// IssueReplayed takes payments of dead letters up again: their tickets are due. Items that are not held any more are passed over.
	IssueReplayed(ctx context.Context, work []ReplayWork) error
	// StartReplayed commits that a message is about to be read, and returns how often that has happened, this time included; 0: the item is not
	// to be issued, since it is not held any more or its replay does not run.
	StartReplayed(ctx context.Context, w ReplayWork) (starts int, err error)
	// FinishReplayed writes what issuing a message came to, with its dead letter.
	FinishReplayed(ctx context.Context, w ReplayWork, o ReplayOutcome) error
	// WatchReplays writes the results of issued items whose payments have come to rest, and completes replays; it returns how many items were
	// finished.
	WatchReplays(ctx context.Context) (finished int, err error)
}

// Settled reports whether a payment in this status has an outcome that no replay changes: one that is stalled is taken up again, and one that is for
// review waits for a person.
func (s Status) Settled() bool {
	return s.Stored() && !s.HasTicket() && s != StatusStalled && s != StatusNeedsReview
}
