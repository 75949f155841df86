package payments

import "time"

// Pause holds tokens back: what is under it is accepted and stored, and nothing of it is sent or asked until the pause ends. What is in flight
// when it begins ends as usual.
type Pause struct {
	ID int64
	// TenantID or AccountID says for whom; both empty: for everybody. Never both.
	TenantID  string
	AccountID string // a Stripe account: acct_…
	Reason    string
	Actor     string
	Since     time.Time
	Until     time.Time // zero: until somebody resumes
}

// AuditEntry is one line of what operators did; lines are only ever added.
type AuditEntry struct {
	ID       int64
	At       time.Time
	Actor    string
	Action   string // as the command: "dlq replay", "dlq discard", "payments resolve", "pause", "resume", "rewind", "tenants create", "keys revoke", …
	Reason   string
	TenantID string // "" when it concerns no tenant, or several
	Target   string // what it was done to: pay_…, dl_…, rpl_…, acct_…, key_…; "" for a filter
	Filter   []byte // JSON object; nil: none
	Result   []byte // JSON object: what it came to
}

// Operation says who does something by hand, and why.
type Operation struct {
	Actor  string
	Reason string
}

// LetterFilter chooses dead letters; empty members let everything through.
type LetterFilter struct {
	TenantID       string
	Reason         Reason
	State          DeadLetterState
	IdempotencyKey string
	Batch          string // a batch's id or key: its own letters and those of its children
	PaymentID      *ID
	ID             string    // of the dead letter itself
	Text           string    // is part of the message or of the payload, as it is written
	Since, Until   time.Time // last seen in [Since, Until)
}

// ReplayState is where a replay stands.
type ReplayState string

// The states of a replay.
const (
	ReplayRunning   ReplayState = "running"
	ReplayPaused    ReplayState = "paused"
	ReplayCanceled  ReplayState = "canceled"
	ReplayCompleted ReplayState = "completed"
)

// ReplayResult is what became of one dead letter of a replay; the words are CONTRACT's.
type ReplayResult string

// The results of replay items.
const (
	ReplaySucceeded      ReplayResult = "succeeded"       // the payment stands where its caller may go on; one item of a replay for each payment
	ReplayAlreadySettled ReplayResult = "already_settled" // it had its outcome, from before or by another item of the same replay; nothing was charged for this one
	ReplayFailedAgain    ReplayResult = "failed_again"    // declined, refused, expired, for review, or dead once more
	ReplayConflict       ReplayResult = "conflict"        // its key names another request
	ReplaySkipped        ReplayResult = "skipped"         // cannot be replayed or changed, is discarded, or was not begun when its replay was canceled
)

// Replay is a job that takes dead letters up again. Its items were chosen when it was made.
type Replay struct {
	ID         string // rpl_…
	State      ReplayState
	Filter     LetterFilter
	Set        map[string]string // members of the messages that are changed first; only for messages that never claimed a row
	Rate       float64           // items a second; 0: as fast as they can be issued
	Actor      string
	Reason     string
	Total      int
	PassedOver int // letters that matched and were in another unfinished replay
	Issued     int // items that were begun, with those that have a result
	Results    map[ReplayResult]int
	NotBegun   int              // of Results: skipped, since the replay was canceled before
	Amount     map[string]int64 // by currency, what could be charged at most when it was made, each payment once
	CreatedAt  time.Time
	UpdatedAt  time.Time
	FinishedAt time.Time // zero while it is running or paused
}

// ReplayPreview is what a replay of a filter would do.
type ReplayPreview struct {
	Count    int // letters that would be taken up
	Payments int // those they are about: each tenant's key once, a batch being one, and a letter without a key one, too
	// Amount is what can be charged, captured or given back at most, by currency, in minor units: of Payments that have no outcome yet, each once, after Set.
	Amount   map[string]int64
	Unpriced int // of Payments: they may be charged, and nobody can tell how much
	// Operations are those of Payments that are captures, cancels or refunds, and may do something: they charge nobody anew.
	Operations int
	Settled    int // of Payments: they have their outcome already
	Review     int // of Payments: they wait for a person, and a replay sends nothing
	Conflict   int // of Count: they name another request under a used key, and nothing is sent for them
	Refused    int // of Count: as they are, they cannot become a payment
	// Skipped are letters that match, would be items of the replay, and are left as they are: of card numbers, or not to be changed by Set.
	Skipped    int
	PassedOver int            // letters that match, and that another unfinished replay has
	ByReason   map[Reason]int // of Count
}

// ReplayItem is one dead letter of a replay.
type ReplayItem struct {
	ReplayID   string
	LetterID   string
	TenantID   string
	PaymentID  *ID
	Kind       Kind         // of its payment; "" while nobody has stored it
	Result     ReplayResult // "" while it has none
	Status     Status       // of its payment, as last seen
	Detail     string       // why, in words
	FinishedAt time.Time
}
