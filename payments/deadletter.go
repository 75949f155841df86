package payments

import "time"

// Reason is why something is a dead letter; the words are CONTRACT's.
type Reason string

// The reasons of dead letters.
const (
	ReasonUndecodable       Reason = "undecodable"
	ReasonInvalid           Reason = "invalid"
	ReasonCardNumber        Reason = "card_number_detected"
	ReasonKeyMissing        Reason = "key_missing"
	ReasonKeyInvalid        Reason = "key_invalid"
	ReasonTenantMismatch    Reason = "tenant_mismatch"
	ReasonTenantUnknown     Reason = "tenant_unknown"
	ReasonKeyReused         Reason = "key_reused"
	ReasonAttemptsExhausted Reason = "attempts_exhausted"
	ReasonHandlerPanic      Reason = "handler_panic"
	ReasonWorkerKilled      Reason = "worker_killed"
)

// DeadLetterState is what has become of a dead letter.
type DeadLetterState string

// The states; a suspect is a message that was started and not yet seen to survive.
const (
	DeadLetterSuspect   DeadLetterState = "suspect"
	DeadLetterOpen      DeadLetterState = "open"
	DeadLetterReplayed  DeadLetterState = "replayed"
	DeadLetterDiscarded DeadLetterState = "discarded"
)

// MessageOrigin is where a message stands in JetStream. The stream's created time is part of it, since a re-created stream counts from 1 again.
type MessageOrigin struct {
	Stream        string
	StreamCreated time.Time
	Sequence      uint64
	Subject       string
}

// DeadLetter is what is kept of a message or a payment that nobody can go on with. Payload and Headers are raw bytes: they may hold what
// neither JSON nor text columns can.
type DeadLetter struct {
	ID             string // dl_…, any unique id
	TenantID       string // "" when it is not known
	IdempotencyKey string
	PaymentID      *ID
	PaymentKind    Kind // of that payment, where it is read with the dead letter; "": a charge, or nobody has stored it
	Reason         Reason
	Message        string // what is wrong and the remedy; never a refused value
	Origin         MessageOrigin
	Headers        []byte // in NATS wire form, nil when there were none
	Payload        []byte // nil for a card number: then only PayloadLength and PayloadSHA256 are kept
	PayloadLength  int
	PayloadSHA256  [32]byte
	Tries          int
	State          DeadLetterState
	Replays        int
	FirstSeen      time.Time
	LastSeen       time.Time
}

// SuspectStartsMax is how many unfinished starts of a message that never reached Admit open its dead letter; SuspectFrom is the delivery from
// which its raw bytes are kept before each start.
const (
	SuspectStartsMax = 3
	SuspectFrom      = 3
)
