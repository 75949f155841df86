package schema

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// EncodePayment writes the document of a payment, byte for byte as [Marshal] does and in a fraction of the time.
func EncodePayment(p Payment) ([]byte, error) {
	if p.NextAction != nil || p.ClientSecret != nil || p.Events != nil {
		return Marshal(p)
	}
	w := writer{out: make([]byte, 0, 1024)}
	if w.payment(p); w.err != nil {
		return nil, w.err
	}
	return w.out, nil
}

// payment writes the document of a payment as [Marshal] does, member by member:
// every payment has an event, and finding out what a struct looks like took
// longer than writing it. NextAction, ClientSecret and Events are left out.
func (w *writer) payment(p Payment) {
	w.out = append(w.out, '{')
	w.member("id", p.ID)
	w.member("tenant_id", p.TenantID)
	w.member("idempotency_key", p.IdempotencyKey)
	w.member("kind", p.Kind)
	w.member("status", p.Status)
	w.number("amount", p.Amount)
	w.number("amount_captured", p.AmountCaptured)
	w.number("amount_refunded", p.AmountRefunded)
	w.member("currency", p.Currency)
	w.nullable("customer", p.Customer)
	w.nullable("payment_method", p.PaymentMethod)
	w.nullable("description", p.Description)
	w.metadata("metadata", p.Metadata)
	w.nullable("batch_id", p.BatchID)
	w.nullable("stripe_payment_intent", p.StripePaymentIntent)
	w.nullable("stripe_account", p.StripeAccount)
	w.number("tries", int64(p.Tries))
	w.nullable("reason", p.Reason)
	w.failure("failure", p.Failure)
	w.timestamp("next_attempt_at", p.NextAttemptAt)
	w.timestamp("expires_at", p.ExpiresAt)
	w.timestamp("created_at", &p.CreatedAt)
	w.timestamp("updated_at", &p.UpdatedAt)
	w.timestamp("finalized_at", p.FinalizedAt)
	w.out = append(w.out, '}')
}

// word writes any text, U+0000 included.
func (w *writer) word(field, text string) {
	out, err := jsontext.AppendQuote(w.out, text)
	if err != nil {
		w.fail(field, "it is not valid UTF-8: encode it as UTF-8")
		return
	}
	w.out = out
}

func (w *writer) member(name, text string) {
	w.name(name)
	w.word(name, text)
}

func (w *writer) null(name string) {
	w.name(name)
	w.out = append(w.out, "null"...)
}

func (w *writer) nullable(name string, text *string) {
	if text == nil {
		w.null(name)
		return
	}
	w.member(name, *text)
}

func (w *writer) number(name string, n int64) {
	w.name(name)
	w.out = strconv.AppendInt(w.out, n, 10)
}

func (w *writer) metadata(name string, m Metadata) {
	w.name(name)
	w.out = append(w.out, '{')
	for i, key := range namesOf(m) {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.word(name, key)
		w.out = append(w.out, ':')
		w.word(name, m[key])
	}
	w.out = append(w.out, '}')
}

func (w *writer) failure(name string, f *Failure) {
	if f == nil {
		w.null(name)
		return
	}
	w.name(name)
	w.out = append(w.out, '{')
	w.nullable("code", f.Code)
	w.nullable("decline_code", f.DeclineCode)
	w.nullable("message", f.Message)
	w.out = append(w.out, '}')
}

func (w *writer) timestamp(name string, t *Timestamp) {
	if t == nil {
		w.null(name)
		return
	}
	w.name(name)
	out, err := t.appendTo(w.out)
	if err != nil {
		w.fail(name, err.Error())
	}
	w.out = out
}
