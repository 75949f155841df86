package document

import (
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// EventType is the type of the event that says that p has come into its status: oncepay.payment.<status>, for what is asked of a payment afterwards
// oncepay.refund.<status>, oncepay.capture.<status> or oncepay.cancel.<status>.
func EventType(p payments.Payment) string {
	if p.Kind.FollowUp() {
		return schema.OperationEventType(string(p.Kind), string(p.Status))
	}
	return schema.PaymentEventType(string(p.Status))
}

// Event is the event of the payment's newest transition, p.Sequence, which happened at the given time in the installation that the namespace
// names: the bytes that are stored and published. Its type is that of the status (see EventType) or another, such as
// schema.EventPaymentDeadLettered. It is a function of its arguments alone, so that an event that is built again is the same event.
//
// A follow-up's data is its operation's document; what Stripe calls its refund is known to FollowUpEvent alone.
func Event(p payments.Payment, eventType, namespace string, at time.Time) ([]byte, error) {
	if p.Kind.FollowUp() {
		return FollowUpEvent(payments.FollowUp{Payment: p}, eventType, namespace, at)
	}
	body, err := schema.EncodePaymentEvent(envelope(p, eventType, namespace, at), Payment(p))
	return written(p, body, err)
}

// FollowUpEvent is Event of a follow-up: its data is the document of FollowUp.
func FollowUpEvent(f payments.FollowUp, eventType, namespace string, at time.Time) ([]byte, error) {
	body, err := schema.EncodeOperationEvent(envelope(f.Payment, eventType, namespace, at), FollowUp(f))
	return written(f.Payment, body, err)
}

func envelope(p payments.Payment, eventType, namespace string, at time.Time) schema.Event {
	subject := p.ID.Format(p.Kind)
	return schema.Event{
		ID:       schema.EventID(subject, p.Sequence, eventType),
		Source:   schema.EventSource(namespace),
		Type:     eventType,
		Subject:  subject,
		Time:     at,
		TenantID: p.TenantID,
		Sequence: p.Sequence,
	}
}

func written(p payments.Payment, body []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, payments.Errorf(payments.CodeInternal, "the event of %s cannot be written: %w", p.ID, err)
	}
	return body, nil
}
