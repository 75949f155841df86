package schema

import "github.com/go-json-experiment/json/jsontext"

// EncodeOperationEvent is [EncodeEvent] with an operation for Data, which is
// written as [Marshal] would write it, but for its timeline: see
// [Operation.ForEvent].
func EncodeOperationEvent(e Event, o Operation) ([]byte, error) {
	e.Data = jsontext.Value("{}") // it will be one
	if err := e.check(); err != nil {
		return nil, err
	}
	w := writer{out: make([]byte, 0, 1536)} // of a usual one
	w.envelope(e)
	w.operation(o)
	return w.event()
}

// operation writes the document of an operation as [Marshal] does, member by
// member, as payment writes a payment's. Events are left out.
func (w *writer) operation(o Operation) {
	w.out = append(w.out, '{')
	w.member("id", o.ID)
	w.member("kind", o.Kind)
	w.member("payment_id", o.PaymentID)
	w.member("tenant_id", o.TenantID)
	w.member("idempotency_key", o.IdempotencyKey)
	w.member("status", o.Status)
	w.number("amount", o.Amount)
	w.member("currency", o.Currency)
	w.nullable("reason", o.Reason)
	w.metadata("metadata", o.Metadata)
	w.nullable("stripe_refund", o.StripeRefund)
	w.nullable("stripe_payment_intent", o.StripePaymentIntent)
	w.nullable("stripe_account", o.StripeAccount)
	w.number("tries", int64(o.Tries))
	w.nullable("status_reason", o.StatusReason)
	w.failure("failure", o.Failure)
	w.timestamp("next_attempt_at", o.NextAttemptAt)
	w.timestamp("created_at", &o.CreatedAt)
	w.timestamp("updated_at", &o.UpdatedAt)
	w.timestamp("finalized_at", o.FinalizedAt)
	w.out = append(w.out, '}')
}
