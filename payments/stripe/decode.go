package stripe

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/oncepay/oncepay/payments"
)

// Codes of Stripe's errors that say something of their own.
const (
	resourceMissing = "resource_missing" // there is no such object
	accountInvalid  = "account_invalid"  // the key does not reach the account
)

var errNoIntent = errors.New("it is no PaymentIntent")

// apiError is what we read of Stripe's error object. Its texts are as Stripe wrote them, until failure cleans them.
type apiError struct {
	Type, Code, DeclineCode, Message string
	names                            bool                    // it has a payment_intent
	Intent                           *payments.PaymentIntent // that, if it can be read
}

// lenient is as encoding/json is: an answer that was refused for its form would leave an outcome unknown.
var lenient = json2.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// decoders are kept, since each makes itself tables to work with.
var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// each calls member with the names and values of an object, in their order, and reports whether raw is one. The values are left as they stand,
// since nobody asks for most of them; the name is lent for the call.
func each(raw []byte, member func(name, value []byte)) bool {
	d := decoders.Get().(*jsontext.Decoder)
	defer func() {
		d.Reset(http.NoBody) // it keeps no answer
		decoders.Put(d)
	}()
	d.Reset(bytes.NewBuffer(raw), lenient)
	if open, err := d.ReadToken(); err != nil || open.Kind() != '{' {
		return false
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadValue()
		if err != nil {
			return false
		}
		if plain(name) {
			name = name[1 : len(name)-1]
		} else {
			name, _ = jsontext.AppendUnquote(nil, name) // what is no UTF-8 is replaced
		}
		value, err := d.ReadValue()
		if err != nil {
			return false
		}
		end := int(d.InputOffset())
		member(name, raw[end-len(value):end:end])
	}
	if _, err := d.ReadToken(); err != nil {
		return false
	}
	_, err := d.ReadToken()
	return err == io.EOF
}

// members is an object by its exact names; of equal ones the last counts.
func members(raw []byte) (map[string]json.RawMessage, bool) {
	m := map[string]json.RawMessage{}
	if !each(raw, func(name, value []byte) { m[string(name)] = value }) {
		return nil, false
	}
	return m, true
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

// intentMembers are the members of a PaymentIntent that we read; nil: missing.
type intentMembers struct {
	object, id, status, amount, amountReceived, currency, customer, latestCharge, livemode, created, metadata, lastError json.RawMessage
}

// place is where the value of a member goes; nil for those that are not read.
func (m *intentMembers) place(name []byte) *json.RawMessage {
	switch string(name) {
	case "object":
		return &m.object
	case "id":
		return &m.id
	case "status":
		return &m.status
	case "amount":
		return &m.amount
	case "amount_received":
		return &m.amountReceived
	case "currency":
		return &m.currency
	case "customer":
		return &m.customer
	case "latest_charge":
		return &m.latestCharge
	case "livemode":
		return &m.livemode
	case "created":
		return &m.created
	case "metadata":
		return &m.metadata
	case "last_payment_error":
		return &m.lastError
	}
	return nil
}

// decodeIntent reads a PaymentIntent. What Decide compares must be there; what is missing would compare as zero.
func decodeIntent(raw []byte) (payments.PaymentIntent, error) {
	var pi payments.PaymentIntent
	var m intentMembers
	ok := each(raw, func(name, value []byte) {
		if p := m.place(name); p != nil {
			*p = value
		}
	})
	var object, status string
	if !ok || !text(m.object, &object) || object != "payment_intent" {
		return pi, errNoIntent
	}
	if !text(m.id, &pi.ID) || !validID(pi.ID, "pi_") || !text(m.status, &status) || word(status) == "" {
		return pi, errors.New("the PaymentIntent has no proper id or status")
	}
	if !there(m.amount) || !number(m.amount, &pi.Amount) || !there(m.currency) || !text(m.currency, &pi.Currency) ||
		!given(m.livemode, &pi.Livemode) {
		return pi, errors.New("the PaymentIntent has no proper amount, currency or livemode")
	}
	if word(pi.Currency) == "" || !reference(m.customer, &pi.Customer) || !reference(m.latestCharge, &pi.LatestCharge) {
		return pi, errors.New("the PaymentIntent's currency, customer or charge cannot be read")
	}
	var created int64
	if !number(m.amountReceived, &pi.AmountReceived) || !number(m.created, &created) || !words(m.metadata, &pi.Metadata) {
		return pi, errors.New("a member of the PaymentIntent cannot be read")
	}
	pi.Status = payments.StripeStatus(word(status))
	if created != 0 {
		pi.Created = time.Unix(created, 0).UTC()
	}
	if last, ok := members(m.lastError); ok {
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
	if !there(raw) {
		return true
	}
	m, ok := members(raw)
	if !ok {
		return json.Unmarshal(raw, w) == nil
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
func there(raw json.RawMessage) bool { return raw != nil && string(raw) != "null" }

// given reads a member that must be there and not null.
func given(raw json.RawMessage, target any) bool {
	return there(raw) && json.Unmarshal(raw, target) == nil
}

// reference reads a reference to another object: null, its id, or, expanded, the object itself. Customers' ids may be of the merchant's own
// choosing.
func reference(raw json.RawMessage, id *string) bool {
	if !text(raw, id) {
		if m, ok := members(raw); !ok || !given(m["id"], id) {
			return false
		}
	}
	return len(*id) <= 255 && !strings.ContainsFunc(*id, func(r rune) bool { return r <= ' ' || r > '~' })
}
