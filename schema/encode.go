package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// EncodeIntent writes the canonical form of an intent: members in a fixed order,
// metadata sorted by name, nothing absent, no spaces. Equal intents give equal
// bytes, and [DecodeIntent] reads them back. A text with U+0000 or invalid UTF-8
// and a result above [IntentMaxBytes] are refused with a [*DecodeError], as the
// receiver would.
func EncodeIntent(in Intent) ([]byte, error) {
	w := writer{out: make([]byte, 0, 256)}
	w.intent(in)
	if w.err == nil && len(w.out) > IntentMaxBytes {
		w.err = errTooLarge(len(w.out), IntentMaxBytes)
	}
	if w.err != nil {
		return nil, w.err
	}
	return w.out, nil
}

// writer appends JSON and keeps the first error.
type writer struct {
	out []byte
	err *DecodeError
}

func (w *writer) fail(field, problem string) {
	if w.err == nil {
		w.err = &DecodeError{Field: field, Problem: problem, Offset: int64(len(w.out))}
	}
}

func (w *writer) intent(in Intent) {
	w.out = append(w.out, '{')
	w.text(memberIdempotencyKey, in.IdempotencyKey)
	w.text(memberTenantID, in.TenantID)
	w.text(memberKind, in.Kind)
	w.text(memberPaymentID, in.PaymentID)
	if in.Amount.Set {
		w.name(memberAmount)
		w.out = strconv.AppendInt(w.out, in.Amount.Value, 10)
	}
	w.text(memberCurrency, in.Currency)
	w.text(memberPaymentMethod, in.PaymentMethod)
	w.text(memberCustomer, in.Customer)
	w.text(memberDescription, in.Description)
	w.text(memberStatementDescriptorSuffix, in.StatementDescriptorSuffix)
	w.text(memberReceiptEmail, in.ReceiptEmail)
	w.text(memberCaptureMethod, in.CaptureMethod)
	if in.OffSession.Set {
		w.name(memberOffSession)
		w.out = strconv.AppendBool(w.out, in.OffSession.Value)
	}
	w.text(memberReturnURL, in.ReturnURL)
	w.texts(memberMetadata, in.Metadata)
	w.time(memberExpiresAt, in.ExpiresAt)
	w.text(memberReason, in.Reason)
	w.out = append(w.out, '}')
}

// name begins a member. The names here need no escapes.
func (w *writer) name(name string) {
	if w.out[len(w.out)-1] != '{' {
		w.out = append(w.out, ',')
	}
	w.out = append(w.out, '"')
	w.out = append(w.out, name...)
	w.out = append(w.out, '"', ':')
}

func (w *writer) quote(field, text string) {
	if strings.IndexByte(text, 0) >= 0 {
		w.fail(field, "U+0000 is not allowed: remove it")
	}
	out, err := jsontext.AppendQuote(w.out, text)
	if err != nil {
		w.fail(field, "it is not valid UTF-8: encode it as UTF-8")
		return
	}
	w.out = out
}

func (w *writer) text(name string, value Optional[string]) {
	if value.Set {
		w.name(name)
		w.quote(name, value.Value)
	}
}

func (w *writer) texts(name string, values map[string]string) {
	if values == nil {
		return
	}
	w.name(name)
	w.out = append(w.out, '{')
	for i, key := range namesOf(values) {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		field := name
		if safe := safeName(key); safe != "" {
			field += "." + safe
		}
		w.quote(field, key)
		w.out = append(w.out, ':')
		w.quote(field, values[key])
	}
	w.out = append(w.out, '}')
}

func (w *writer) time(name string, value Optional[time.Time]) {
	if !value.Set {
		return
	}
	t := value.Value.UTC()
	if t.Year() < 1 || t.Year() > 9999 {
		w.fail(name, fmt.Sprintf("the year is %d: send a time from year 1 to 9999", t.Year()))
		return
	}
	if t.IsZero() {
		w.fail(name, zeroTime)
		return
	}
	w.name(name)
	w.out = append(w.out, '"')
	w.out = t.AppendFormat(w.out, time.RFC3339Nano)
	w.out = append(w.out, '"')
}

// namesOf lists the names of a few texts in their order, without the iterators that cost more than the sorting.
func namesOf(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
