package stripe

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/oncepay/oncepay/payments"
)

var errNoIntent = errors.New("it is no PaymentIntent")

// apiError is what we read of Stripe's error object. Its texts are as Stripe wrote them, until failure cleans them.
type apiError struct {
	Type, Code, DeclineCode, Message string
	names                            bool                    // it has a payment_intent
	Intent                           *payments.PaymentIntent // that, if it can be read
}

// members reads an object by its exact names, and leaves its values as they are: nobody asks for most of them. It is as lenient as
// encoding/json; an answer that was refused for its form would leave an outcome unknown.
func members(raw []byte) (map[string]json.RawMessage, bool) {
	d := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if open, err := d.ReadToken(); err != nil || open.Kind() != '{' {
		return nil, false
	}
	m := make(map[string]json.RawMessage, 16)
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, false
		}
		key := name.String()
		value, err := d.ReadValue()
		if err != nil {
			return nil, false
		}
		end := int(d.InputOffset())
		m[key] = json.RawMessage(raw[end-len(value) : end])
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, false
	}
	_, err := d.ReadToken()
	return m, err == io.EOF
}

// decodeError reads {"error": {"type": …}}, and reports false for anything else.
func decodeError(body []byte) (apiError, bool) {
	var e apiError
	outer, ok := members(body)
	if !ok {
		return e, false
	}
	m, ok := members(outer["error"])
	if !ok || !text(m["type"], &e.Type) || e.Type == "" {
		return e, false
	}
	if !text(m["code"], &e.Code) || !text(m["decline_code"], &e.DeclineCode) || !text(m["message"], &e.Message) {
		return e, false
	}
	e.Type, e.Code, e.DeclineCode = word(e.Type), word(e.Code), word(e.DeclineCode)
	if raw, ok := m["payment_intent"]; ok && string(raw) != "null" {
		e.names = true
		if pi, err := decodeIntent(raw); err == nil {
			e.Intent = &pi
		}
	}
	return e, e.Type != ""
}

// decodeIntent reads a PaymentIntent. What Decide compares must be there; what is missing would compare as zero.
func decodeIntent(raw []byte) (payments.PaymentIntent, error) {
	var pi payments.PaymentIntent
	m, ok := members(raw)
	var object, status string
	if !ok || !text(m["object"], &object) || object != "payment_intent" {
		return pi, errNoIntent
	}
	if !text(m["id"], &pi.ID) || !validID(pi.ID, "pi_") || !text(m["status"], &status) || word(status) == "" {
		return pi, errors.New("the PaymentIntent has no proper id or status")
	}
	if !there(m, "amount") || !number(m["amount"], &pi.Amount) || !there(m, "currency") || !text(m["currency"], &pi.Currency) ||
		!given(m, "livemode", &pi.Livemode) {
		return pi, errors.New("the PaymentIntent has no proper amount, currency or livemode")
	}
	if word(pi.Currency) == "" || !reference(m["customer"], &pi.Customer) || !reference(m["latest_charge"], &pi.LatestCharge) {
		return pi, errors.New("the PaymentIntent's currency, customer or charge cannot be read")
	}
	var created int64
	if !number(m["amount_received"], &pi.AmountReceived) || !number(m["created"], &created) || !words(m["metadata"], &pi.Metadata) {
		return pi, errors.New("a member of the PaymentIntent cannot be read")
	}
	pi.Status = payments.StripeStatus(word(status))
	if created != 0 {
		pi.Created = time.Unix(created, 0).UTC()
	}
	if last, ok := members(m["last_payment_error"]); ok {
		var e apiError
		if !text(last["code"], &e.Code) || !text(last["decline_code"], &e.DeclineCode) || !text(last["message"], &e.Message) {
			return pi, errors.New("the PaymentIntent's last error cannot be read")
		}
		pi.LastError = cleanFailure(e)
	}
	return pi, nil
}

// text reads a string; a member that is missing or null is "".
func text(raw json.RawMessage, s *string) bool {
	if plain(raw) {
		*s = string(raw[1 : len(raw)-1])
		return true
	}
	return raw == nil || json.Unmarshal(raw, s) == nil
}

// plain reports whether the value is a string of ASCII characters that stand for themselves.
func plain(raw []byte) bool {
	if len(raw) < 2 || raw[0] != '"' {
		return false
	}
	for _, c := range raw[1 : len(raw)-1] {
		if c < ' ' || c > '~' || c == '\\' {
			return false
		}
	}
	return true
}

// number reads a whole number; a member that is missing or null leaves n alone.
func number(raw json.RawMessage, n *int64) bool {
	if v, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		*n = v
		return true
	}
	return raw == nil || json.Unmarshal(raw, n) == nil
}

// words reads an object of strings; a member that is missing or null leaves w alone.
func words(raw json.RawMessage, w *map[string]string) bool {
	m, ok := members(raw)
	if !ok {
		return raw == nil || json.Unmarshal(raw, w) == nil
	}
	*w = make(map[string]string, len(m))
	for name, value := range m {
		var s string
		if !text(value, &s) {
			return false
		}
		(*w)[name] = s
	}
	return true
}

// there reports whether a member is there and not null.
func there(m map[string]json.RawMessage, name string) bool {
	raw, ok := m[name]
	return ok && string(raw) != "null"
}

// given reads a member that must be there and not null.
func given(m map[string]json.RawMessage, name string, target any) bool {
	return there(m, name) && json.Unmarshal(m[name], target) == nil
}

// reference reads a reference to another object: null, its id, or, expanded, the object itself. Customers' ids may be of the merchant's own
// choosing.
func reference(raw json.RawMessage, id *string) bool {
	if !text(raw, id) {
		if m, ok := members(raw); !ok || !given(m, "id", id) {
			return false
		}
	}
	return len(*id) <= 255 && !strings.ContainsFunc(*id, func(r rune) bool { return r <= ' ' || r > '~' })
}
