package producer

import (
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/oncepay/oncepay/payments"
)

// What errors.Is finds in an error of this package, beside the cause.
var (
	// ErrInvalid: the intent can never be a payment as it is. A
	// *payments.ValidationError in the same error names the field.
	ErrInvalid = errors.New("the intent is refused")
	// ErrTooLarge: the message is larger than the server or the stream takes.
	ErrTooLarge = errors.New("the message is too large")
	// ErrStreamFull: the stream holds as much as it may, and the message is not in it.
	ErrStreamFull = errors.New("the stream is full")
	// ErrNotAcknowledged: the outcome is Unknown.
	ErrNotAcknowledged = errors.New("the message is not acknowledged")
	// ErrNotSent: the caller's context ended while the message was queued.
	ErrNotSent = errors.New("the message was not sent")
	// ErrClosed: the Publisher was closed before the message was queued.
	ErrClosed = errors.New("the publisher is closed")

	// errNoStream: no stream takes the subject, for now or for ever.
	errNoStream = errors.New("no stream takes the subject")
	// errNoRoom: JetStream has no room left, in any stream.
	errNoRoom = errors.New("JetStream has no room left")
)

// Outcome is what is known of a message after an attempt to publish it.
type Outcome int

const (
	// Unknown: it may be in the stream or not. Publish the same intent under the
	// same key again; if it was stored, the repeat changes nothing. It is the zero
	// value: who forgets to say what happened does not know.
	Unknown Outcome = iota
	// Stored: JetStream has acknowledged it.
	Stored
	// NotStored: it is definitely not in the stream and never will be by this
	// attempt.
	NotStored
)

// String returns the outcome's name in logs and metrics.
func (o Outcome) String() string {
	switch o {
	case Stored:
		return "stored"
	case NotStored:
		return "not_stored"
	default:
		return "unknown"
	}
}

// Result is what became of one message.
type Result struct {
	Outcome Outcome
	// PaymentID is the id that the tenant and the key name, whatever the outcome.
	PaymentID payments.ID
	// Stream and Sequence are where a stored message stands.
	Stream   string
	Sequence uint64
	// Err is nil for a stored message, else an *Error.
	Err error
}

// Error says why a message is not known to be stored. Its text names what to do
// and never repeats a value of the intent.
type Error struct {
	// Outcome is NotStored or Unknown.
	Outcome Outcome
	// Again says that the same message may be stored later without anybody
	// changing it. It is true for every Unknown.
	Again bool
	// Message is what happened, and the remedy.
	Message string
	// Err is the cause: a *payments.ValidationError, a *schema.DecodeError, the
	// context's, NATS's or JetStream's.
	Err error

	kind error // one of the errors above, nil for none
}

// Error returns the outcome, the message and the cause.
func (e *Error) Error() string {
	s := "publish: not stored: "
	if e.Outcome != NotStored {
		s = "publish: may be stored: "
	}
	s += e.Message
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is what e is an instance of: ErrNotAcknowledged for
// every Unknown, and one of the others for what is not stored.
func (e *Error) Is(target error) bool {
	return target == e.kind && target != nil || target == ErrNotAcknowledged && e.Outcome == Unknown
}

// as says what kind of error e is.
func (e *Error) as(kind error) *Error {
	e.kind = kind
	return e
}

// standstill reports whether any other message would meet the same for now: the
// stream has no room, or cannot be reached.
func (e *Error) standstill() bool {
	return e.kind == ErrStreamFull || e.kind == errNoRoom || errors.Is(e.Err, nats.ErrDisconnected)
}

// IsNotStored reports whether err proves that the message is in no stream.
func IsNotStored(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Outcome == NotStored
}

// MayBeStored reports whether err leaves open if the message is in the stream. It
// is true for every error that does not prove the contrary, of whatever origin.
func MayBeStored(err error) bool { return err != nil && !IsNotStored(err) }

// Retryable reports whether publishing the same message again can help. It is
// false for a message that will always be refused, and for nil.
func Retryable(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Again || e.Outcome == Unknown)
}

func notStored(again bool, message string, cause error) *Error {
	return &Error{Outcome: NotStored, Again: again, Message: message, Err: cause}
}

func unknown(message string, cause error) *Error {
	return &Error{Outcome: Unknown, Again: true, Message: message, Err: cause}
}
