package document

import (
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// EventType is the type of the event that says that p has come into its status: oncepay.payment.<status>, for refunds oncepay.refund.<status>.
func EventType(p payments.Payment) string {
	if p.Kind == payments.KindRefund {
		return schema.RefundEventType(string(p.Status))
	}
	return schema.PaymentEventType(string(p.Status))
}

// Event is the event of the payment's newest transition, p.Sequence, which happened at the given time in the installation that the namespace
// names: the bytes that are stored and published. Its type is that of the status (see EventType) or another, such as
// schema.EventPaymentDeadLettered. It is a function of its arguments alone, so that an event that is built again is the same event.
func Event(p payments.Payment, eventType, namespace string, at time.Time) ([]byte, error) {
	subject := p.ID.Format(p.Kind)
	body, err := schema.EncodePaymentEvent(schema.Event{
		ID:       schema.EventID(subject, p.Sequence, eventType),
		Source:   schema.EventSource(namespace),
		Type:     eventType,
		Subject:  subject,
		Time:     at,
		TenantID: p.TenantID,
		Sequence: p.Sequence,
	}, Payment(p))
	if err != nil {
		return nil, payments.Errorf(payments.CodeInternal, "the event of %s cannot be written: %w", p.ID, err)
	}
	return body, nil
}
