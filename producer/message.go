package producer

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
)

// Message is one intent to publish.
type Message struct {
	// Intent is what to publish. TenantID and IdempotencyKey are required.
	// OffSession goes out as it stands: false means that the customer is there.
	Intent payments.Intent
	// Lane is the stream to use; the zero value is the interactive lane.
	Lane payments.Lane
	// Traceparent is the W3C trace context to send along, "" for the one that
	// Options.Traceparent finds in the context.
	Traceparent string
}

// prepare checks and encodes a message. It does not touch the network. The payment's
// id is not made here: it is not sent, and may as well be made while others wait.
func (p *Publisher) prepare(ctx context.Context, m Message) (*nats.Msg, *Error) {
	intent := m.Intent.Normalized()
	if message := payments.CheckTenantID(intent.TenantID); message != "" {
		return nil, invalid(payments.ReasonInvalid, "tenant_id", message)
	}
	if payments.ReservedKey(intent.IdempotencyKey) {
		return nil, invalid(payments.ReasonKeyInvalid, "idempotency_key", `must not contain "`+payments.ChildSeparator+`": it is reserved for the payments of a batch`)
	}
	if field := intent.CardField(); field != "" {
		return nil, invalid(payments.ReasonCardNumber, field, "contains what looks like a card number: send a Stripe payment_method instead, and never card data")
	}
	if err := intent.ValidateAny(); err != nil {
		return nil, notStored(false, "the intent is not valid", err).as(ErrInvalid)
	}
	route, err := p.route(m.Lane, intent.TenantID)
	if err != nil {
		return nil, err
	}
	body, encodeErr := schema.EncodeIntent(document.Intent(intent))
	if encodeErr != nil {
		return nil, notStored(false, "the intent cannot be encoded", encodeErr).as(ErrInvalid)
	}
	msg := nats.NewMsg(route.subject)
	msg.Data = body
	msg.Header.Set(jetstream.ExpectedStreamHeader, route.stream)
	trace := m.Traceparent
	if trace == "" && p.opts.Traceparent != nil {
		trace = p.opts.Traceparent(ctx)
	}
	if validTraceparent(trace) {
		msg.Header.Set(schema.HeaderTraceparent, trace)
	}
	return msg, nil
}

func invalid(reason payments.Reason, field, message string) *Error {
	return notStored(false, "the intent is not valid",
		&payments.ValidationError{Reason: reason, Fields: []payments.FieldError{{Field: field, Message: message}}}).as(ErrInvalid)
}

// route is where a lane's intents of one tenant go.
type route struct{ stream, subject string }

func (p *Publisher) route(lane payments.Lane, tenant string) (route, *Error) {
	var (
		r   route
		err error
	)
	switch lane {
	case 0, payments.LaneInteractive:
		r.stream = p.interactive.stream
		r.subject, err = p.subjects.Intent(tenant)
	case payments.LaneBulk:
		r.stream = p.bulk.stream
		r.subject, err = p.subjects.Bulk(tenant)
	default:
		return r, notStored(false, "there is no such lane: use the interactive or the bulk lane", nil).as(ErrInvalid)
	}
	if err != nil {
		return r, notStored(false, "the tenant makes no subject", err).as(ErrInvalid)
	}
	return r, nil
}

// validTraceparent reports whether s has the form of the W3C Trace Context
// recommendation, section 3.2, version 00. Another one is not sent: a broken
// trace must not refuse a payment, and a header must not carry line ends.
func validTraceparent(s string) bool {
	if len(s) != 55 || s[:3] != "00-" || s[35] != '-' || s[52] != '-' {
		return false
	}
	zero := [2]bool{true, true}
	for i := 3; i < len(s); i++ {
		c := s[i]
		if i == 35 || i == 52 {
			continue
		}
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
		if c != '0' && i < 35 {
			zero[0] = false
		}
		if c != '0' && i > 35 && i < 52 {
			zero[1] = false
		}
	}
	return !zero[0] && !zero[1]
}
