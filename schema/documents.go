package schema

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The documents below are printed alike by the HTTP API, the command line and
// events. As with Stripe, what an object does not have is null, not an empty
// text, and a list or map that is empty is [] or {}.

// Payment is one payment.
type Payment struct {
	ID                  string     `json:"id"`
	TenantID            string     `json:"tenant_id"`
	IdempotencyKey      string     `json:"idempotency_key"`
	Kind                string     `json:"kind"`
	Status              string     `json:"status"`
	Amount              int64      `json:"amount"` // minor units
	AmountCaptured      int64      `json:"amount_captured"`
	AmountRefunded      int64      `json:"amount_refunded"`
	Currency            string     `json:"currency"`
	Customer            *string    `json:"customer"`
	PaymentMethod       *string    `json:"payment_method"`
	Description         *string    `json:"description"`
	Metadata            Metadata   `json:"metadata"`
	BatchID             *string    `json:"batch_id"`
	StripePaymentIntent *string    `json:"stripe_payment_intent"`
	StripeAccount       *string    `json:"stripe_account"`
	Tries               int        `json:"tries"`
	Reason              *string    `json:"reason"`
	Failure             *Failure   `json:"failure"`
	NextAttemptAt       *Timestamp `json:"next_attempt_at"`
	ExpiresAt           *Timestamp `json:"expires_at"`
	CreatedAt           Timestamp  `json:"created_at"`
	UpdatedAt           Timestamp  `json:"updated_at"`
	FinalizedAt         *Timestamp `json:"finalized_at"`

	// NextAction and ClientSecret stand in the answer to the owning tenant
	// alone, while the payment requires an action; never in an event.
	NextAction   jsontext.Value `json:"next_action,omitzero"`
	ClientSecret *string        `json:"client_secret,omitzero"`
	// Events are what "payments show" adds.
	Events []TimelineEntry `json:"events,omitzero"`
}

// ForEvent is the payment as an event carries it: without what only the owning
// tenant's own request may see, and without its timeline.
func (p Payment) ForEvent() Payment {
	p.NextAction, p.ClientSecret, p.Events = nil, nil, nil
	return p
}

// Failure is why a payment failed, in Stripe's words.
type Failure struct {
	Code        *string `json:"code"`
	DeclineCode *string `json:"decline_code"`
	Message     *string `json:"message"`
}

// TimelineEntry is one transition of a payment.
type TimelineEntry struct {
	Sequence int64     `json:"sequence"` // from 1, without gaps
	At       Timestamp `json:"at"`
	Type     string    `json:"type"`
	Status   string    `json:"status"`
	Reason   *string   `json:"reason"`
}

// The states of a [DeadLetter].
const (
	DeadOpen      = "open"
	DeadReplayed  = "replayed"
	DeadDiscarded = "discarded"
)

// DeadLetter is one message or payment that was given up.
type DeadLetter struct {
	ID             string    `json:"id"`
	TenantID       *string   `json:"tenant_id"` // null where the message named none
	IdempotencyKey *string   `json:"idempotency_key"`
	PaymentID      *string   `json:"payment_id"`
	Reason         string    `json:"reason"` // one of [DeadReasons]
	Message        string    `json:"message"`
	Subject        *string   `json:"subject"` // null where it came from no stream
	StreamSeq      *int64    `json:"stream_seq"`
	Tries          int       `json:"tries"`
	State          string    `json:"state"`
	Replays        int       `json:"replays"`
	FirstSeen      Timestamp `json:"first_seen"`
	LastSeen       Timestamp `json:"last_seen"`

	// Differs names the fields of a conflict (key_reused); else it is left out.
	Differs []string `json:"differs,omitzero"`
	// Headers and PayloadBase64 are what "dlq show" adds. A payload that held a
	// card number is not kept.
	Headers       map[string][]string `json:"headers,omitzero"`
	PayloadBase64 *string             `json:"payload_base64,omitzero"`
	// PayloadLength, in bytes, and PayloadSHA256, in hex, stand there in its
	// place.
	PayloadLength *int    `json:"payload_length,omitzero"`
	PayloadSHA256 *string `json:"payload_sha256,omitzero"`
}

// DeadReasons lists the reasons of dead letters.
func DeadReasons() []string {
	return []string{
		"undecodable", "invalid", "card_number_detected", "key_missing", "key_invalid", "tenant_mismatch",
		"tenant_unknown", "key_reused", "attempts_exhausted", "handler_panic", "worker_killed",
	}
}

// Batch is one batch and how far it is.
type Batch struct {
	ID             string                 `json:"id"`
	IdempotencyKey string                 `json:"idempotency_key"`
	Parent         *string                `json:"parent"`
	Count          int                    `json:"count"`
	ByStatus       map[string]StatusTotal `json:"by_status"`
	Complete       bool                   `json:"complete"`
}

// StatusTotal is how many payments of a batch have one status, and their sums.
type StatusTotal struct {
	Count  int              `json:"count"`
	Amount map[string]int64 `json:"amount"` // minor units by currency
}

// BatchAccepted is the answer to a batch.
type BatchAccepted struct {
	ID       string         `json:"id"`
	Payments []BatchPayment `json:"payments"`
}

// BatchPayment is one child of a batch.
type BatchPayment struct {
	Index          int    `json:"index"` // from 0
	ID             string `json:"id"`
	IdempotencyKey string `json:"idempotency_key"`
	Status         string `json:"status"`
}

// List is one page.
type List[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor"` // null on the last page
}

// MarshalJSON writes an empty page as [], whichever encoder calls it.
func (l List[T]) MarshalJSON() ([]byte, error) {
	type page List[T]
	return Marshal(page(l))
}

// Metadata is a client's metadata. No metadata is {}.
type Metadata map[string]string

// MarshalJSON writes the names in order, whichever encoder calls it.
func (m Metadata) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string(m), json.Deterministic(true))
}

// Marshal writes a document: nil slices and maps as [] and {}, names in order,
// no spaces.
func Marshal(document any) ([]byte, error) {
	return json.Marshal(document, json.Deterministic(true))
}

// Null is nil, hence null, for the zero value.
func Null[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}
