package schema

import "github.com/go-json-experiment/json/jsontext"

// LetterFilter chooses dead letters. Members that choose nothing are left out.
type LetterFilter struct {
	TenantID       string     `json:"tenant_id,omitzero"`
	Reason         string     `json:"reason,omitzero"`
	State          string     `json:"state,omitzero"`
	IdempotencyKey string     `json:"idempotency_key,omitzero"`
	Batch          string     `json:"batch,omitzero"` // id or key of a batch
	PaymentID      string     `json:"payment_id,omitzero"`
	ID             string     `json:"id,omitzero"`
	Text           string     `json:"text,omitzero"`
	Since          *Timestamp `json:"since,omitzero"`
	Until          *Timestamp `json:"until,omitzero"`
}

// ReplayPreview is what a replay would do, as "dlq replay --dry-run" prints it.
type ReplayPreview struct {
	Filter     LetterFilter     `json:"filter"`
	DryRun     bool             `json:"dry_run"`
	Count      int              `json:"count"`
	Payments   int              `json:"payments"`    // those that the dead letters are about, each once
	Amount     map[string]int64 `json:"amount"`      // minor units by currency: what can be charged, captured or given back at most
	Unpriced   int              `json:"unpriced"`    // of payments: nobody can tell their amount
	Operations int              `json:"operations"`  // of payments: captures, cancels and refunds that may do something
	Settled    int              `json:"settled"`     // of payments: they have their outcome
	Review     int              `json:"review"`      // of payments: they wait for a person
	Conflict   int              `json:"conflict"`    // of count: they name another request under a used key
	Refused    int              `json:"refused"`     // of count: they cannot become a payment as they are
	Skipped    int              `json:"skipped"`     // beside count: they are left as they are; the replay's total is count and these
	PassedOver int              `json:"passed_over"` // beside count: another unfinished replay has them
	ByReason   map[string]int   `json:"by_reason"`
}

// Replay is a job that takes dead letters up again.
type Replay struct {
	ID         string            `json:"id"`
	State      string            `json:"state"` // running, paused, canceled, completed
	Filter     LetterFilter      `json:"filter"`
	Set        map[string]string `json:"set"`  // members of messages that are changed first
	Rate       *float64          `json:"rate"` // items a second; null: as fast as can be
	Actor      string            `json:"actor"`
	Note       *string           `json:"note"` // why, in the operator's words
	Total      int               `json:"total"`
	PassedOver int               `json:"passed_over"` // matched, and were in another unfinished replay
	Issued     int               `json:"issued"`      // begun, with those that are finished
	Finished   int               `json:"finished"`    // have a result
	NotBegun   int               `json:"not_begun"`   // of finished: skipped, since the replay was canceled before
	Results    map[string]int    `json:"results"`
	Amount     map[string]int64  `json:"amount"` // minor units by currency: what could be charged at most
	CreatedAt  Timestamp         `json:"created_at"`
	UpdatedAt  Timestamp         `json:"updated_at"`
	FinishedAt *Timestamp        `json:"finished_at"`
}

// ReplayItem is one dead letter of a replay.
type ReplayItem struct {
	ReplayID     string     `json:"replay_id"`
	DeadLetterID string     `json:"dead_letter_id"`
	TenantID     *string    `json:"tenant_id"`
	PaymentID    *string    `json:"payment_id"`
	Result       *string    `json:"result"` // null while it has none
	Status       *string    `json:"status"` // of its payment, as last seen
	Detail       *string    `json:"detail"`
	FinishedAt   *Timestamp `json:"finished_at"`
}

// Discarded is what "dlq discard" came to.
type Discarded struct {
	Filter    LetterFilter    `json:"filter"`
	Discarded int             `json:"discarded"`
	Canceled  int             `json:"canceled"` // of discarded: their stalled payment was canceled
	Refused   []RefusedLetter `json:"refused"`  // matched, and were left as they are
}

// DiscardPreview is what discarding would do, as "dlq discard --dry-run" prints
// it.
type DiscardPreview struct {
	Filter   LetterFilter     `json:"filter"`
	DryRun   bool             `json:"dry_run"`
	Count    int              `json:"count"`
	Settled  int              `json:"settled"`  // of count: their payment has its outcome, and keeps it
	Canceled int              `json:"canceled"` // of count: their stalled payment would be canceled
	Amount   map[string]int64 `json:"amount"`   // of count: minor units by currency
	Unpriced int              `json:"unpriced"` // of count: nobody can tell how much money they are about
	Refused  []RefusedLetter  `json:"refused"`  // of count: would be left as they are
}

// RefusedLetter is a dead letter that was left as it was, and why.
type RefusedLetter struct {
	ID      string `json:"id"`
	Message string `json:"message"`
}

// Pause holds back what is sent for a tenant, an account or, with both null,
// for everybody; acceptance goes on.
type Pause struct {
	TenantID *string    `json:"tenant_id"`
	Account  *string    `json:"account"` // a Stripe account
	Reason   string     `json:"reason"`
	Actor    string     `json:"actor"`
	Since    Timestamp  `json:"since"`
	Until    *Timestamp `json:"until"` // null: until somebody resumes
}

// Rewind is a job by which a restored database learns again what it has
// forgotten.
type Rewind struct {
	ID             int64      `json:"id"`
	State          string     `json:"state"` // running, completed, failed
	Step           string     `json:"step"`
	Since          Timestamp  `json:"since"`
	Actor          string     `json:"actor"`
	Reason         *string    `json:"reason"`
	Objects        int        `json:"objects"`         // PaymentIntents of ours that Stripe has
	Doubted        int        `json:"doubted"`         // payments that are looked up before anything is sent for them
	Corrected      int        `json:"corrected"`       // payments that had ended otherwise than Stripe says
	Adopted        int        `json:"adopted"`         // payments that waited for their customer or a capture, and had gone on
	Disagrees      int        `json:"disagrees"`       // payments that Stripe contradicts, for a person to look at
	Messages       int        `json:"messages"`        // messages that were read again
	Restored       int        `json:"restored"`        // payments that were stored again
	DeadLetters    int        `json:"dead_letters"`    // messages that became dead letters again
	UnknownTenants []string   `json:"unknown_tenants"` // named by messages or Stripe, and not in the database
	Note           *string    `json:"note"`
	Detail         *string    `json:"detail"` // why it stands still, or failed
	CreatedAt      Timestamp  `json:"created_at"`
	UpdatedAt      Timestamp  `json:"updated_at"`
	FinishedAt     *Timestamp `json:"finished_at"`
}

// AcceptedMark is what "doctor --accept-mark" prints: what the database was
// found to be, and where its mark stands from now on.
type AcceptedMark struct {
	Found    string `json:"found"` // fits, begins, promoted, behind, other_system, copy_lost
	SystemID string `json:"system_id"`
	Timeline int64  `json:"timeline"`
	Counter  int64  `json:"counter"`
}

// AuditEntry is one line of what operators did.
type AuditEntry struct {
	ID       int64          `json:"id"`
	At       Timestamp      `json:"at"`
	Actor    string         `json:"actor"`
	Action   string         `json:"action"` // as the command
	Reason   *string        `json:"reason"`
	TenantID *string        `json:"tenant_id"`
	Target   *string        `json:"target"` // id of what it was done to
	Filter   jsontext.Value `json:"filter"`
	Result   jsontext.Value `json:"result"`
}
