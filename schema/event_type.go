package schema

import (
	"errors"
	"fmt"
	"strings"
)

// EventTypePrefix begins every event type.
const EventTypePrefix = "oncepay."

// The event types that are not made of a status.
const (
	EventPaymentDeadLettered = "oncepay.payment.dead_lettered"
	EventBatchCompleted      = "oncepay.batch.completed"
	EventCapThreshold        = "oncepay.cap.threshold"
)

// EventTypeMaxBytes bounds an event type.
const EventTypeMaxBytes = 100

// ErrEventType is wrapped by every error about an event type.
var ErrEventType = errors.New("invalid event type")

// PaymentEventType is the type of the event that says that a payment came into
// status.
func PaymentEventType(status string) string { return EventTypePrefix + "payment." + status }

// OperationEventType is the type of the event that says that an operation of
// kind, a capture, a cancel or a refund, came into status:
// "oncepay.refund.succeeded".
func OperationEventType(kind, status string) string { return EventTypePrefix + kind + "." + status }

// PaymentStatuses lists the statuses that a payment's document may show, open
// ones first.
func PaymentStatuses() []string {
	return []string{
		"received", "processing", "requires_capture", "requires_action", "pending", "waiting", "unknown", "needs_review",
		"stalled", "succeeded", "failed", "rejected", "expired", "canceled",
	}
}

// OperationStatuses lists the statuses that an operation's document may show,
// open ones first.
func OperationStatuses() []string {
	return []string{
		"received", "processing", "pending", "waiting", "unknown", "needs_review", "stalled", "succeeded", "failed", "rejected", "canceled",
	}
}

// OperationKinds lists the kinds of operations.
func OperationKinds() []string { return []string{KindRefund, KindCapture, KindCancel} }

// shownOnly is the status that documents alone show.
const shownOnly = "processing"

// EventTypes lists the event types of this version. There is never an event for
// processing: somebody holds the ticket, which nobody records.
func EventTypes() []string {
	var types []string
	for _, status := range PaymentStatuses() {
		if status != shownOnly {
			types = append(types, PaymentEventType(status))
		}
	}
	for _, kind := range OperationKinds() {
		for _, status := range OperationStatuses() {
			if status != shownOnly {
				types = append(types, OperationEventType(kind, status))
			}
		}
	}
	return append(types, EventPaymentDeadLettered, EventBatchCompleted, EventCapThreshold)
}

// EventToken is the last token of an event's subject: the type without
// "oncepay.", dots as dashes, underscores kept. "oncepay.payment.dead_lettered"
// gives "payment-dead_lettered".
func EventToken(eventType string) (string, error) {
	rest, ok := strings.CutPrefix(eventType, EventTypePrefix)
	if !ok || len(eventType) > EventTypeMaxBytes {
		return "", fmt.Errorf("%w: it must begin with %q and have at most %d bytes", ErrEventType, EventTypePrefix, EventTypeMaxBytes)
	}
	object, what, ok := strings.Cut(rest, ".")
	if !ok || !validWord(object) || !validWord(what) {
		return "", fmt.Errorf("%w: it must be %s<object>.<what>, both of a-z and _", ErrEventType, EventTypePrefix)
	}
	return object + "-" + what, nil
}

// validWord reports whether s is lower-case letters and single underscores
// between them, so that a token leads back to one type only.
func validWord(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c == '_' && i > 0 && i < len(s)-1 && s[i-1] != '_' {
			continue
		}
		if c < 'a' || c > 'z' {
			return false
		}
	}
	return s != ""
}
