package stripe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/oncepay/oncepay/payments"
)

// pages is a list of Stripe's that is to be read to its end.
type pages struct {
	payment payments.Payment // whose id stands in the log if something is wrong
	path    string
	query   func(after string) []field
	decode  func(body []byte) (page, error)
	before  func() bool  // asked before every page; false ends the reading
	item    func(record) // told of every item, in Stripe's order
	most    int          // a list of more pages proves nothing; 0: there is no bound
}

// pages reads a list. Only one that was read to its end is records.
func (g *Gateway) pages(ctx context.Context, l pages) (payments.Observation, apiError) {
	after := ""
	for n := 0; l.most == 0 || n < l.most; n++ {
		if !l.before() {
			return g.noRecords("the look-up was ended before a page"), apiError{}
		}
		x := get(l.path, encode(l.query(after)))
		g.do(ctx, x)
		o, e, ok := g.readable(l.payment, x)
		if !ok {
			return o, e
		}
		page, err := l.decode(x.body)
		if err != nil {
			o.Detail, o.Trouble = err.Error(), true
			return o, apiError{}
		}
		for _, item := range page.items {
			l.item(item)
		}
		if !page.more {
			o.Kind, o.RetryAfter, o.Detail = payments.ObservedRecords, 0, "Stripe's records were read"
			return o, apiError{}
		}
		last := page.items[len(page.items)-1].id
		if last == after {
			o.Detail, o.Trouble = "the listing goes round in circles", true
			return o, apiError{}
		}
		after = last
	}
	return g.noRecords("the listing is too long"), apiError{}
}

// refusals are answers of a Stripe that works.
var refusals = []payments.ObservationKind{
	payments.ObservedInvalid, payments.ObservedUnauthorized, payments.ObservedKeyConflict, payments.ObservedInUse, payments.ObservedLocked,
	payments.ObservedRateLimited,
}

// readable reports whether the answer to a reading is a 200; if not, the observation says that nothing is known.
func (g *Gateway) readable(p payments.Payment, x *exchange) (payments.Observation, apiError, bool) {
	o := g.envelope(x)
	o.Kind = payments.ObservedNoRecords
	switch {
	case x.bug != nil:
		g.bug(p, x.bug)
		o.Detail = "bug: " + x.bug.Error()
	case x.err != nil || !x.maybeSent:
		o.Detail = "Stripe's records could not be read: " + faultOf(x.err)
		o.Trouble = !errors.Is(x.err, context.Canceled)
	case x.status != http.StatusOK:
		e, shaped := decodeError(x.body)
		o.Failure = g.failure(e)
		o.Trouble = !shaped || !slices.Contains(refusals, classify(x.status, e))
		o.Detail = fmt.Sprintf("Stripe answered %d to a reading", x.status)
		return o, e, false
	default:
		return o, apiError{}, true
	}
	return o, apiError{}, false
}

// record is one PaymentIntent or refund of a page, or an event about one, read only as far as needed to tell whose it is.
type record struct {
	id       string
	about    string // of an event: the PaymentIntent's id
	metadata map[string]string
	raw      json.RawMessage
}

type page struct {
	items []record
	more  bool
}

// decodePage reads a list of PaymentIntents.
func decodePage(body []byte) (page, error) {
	return decodeList(body, func(raw json.RawMessage) (record, error) {
		id, metadata, err := whose(raw, "payment_intent", validIntent)
		return record{id: id, metadata: metadata, raw: raw}, err
	})
}

// decodeList reads a list. Whatever it lacks, above all has_more, makes it no page: an empty page must not pass for "nothing there".
func decodeList(body []byte, decode func(json.RawMessage) (record, error)) (page, error) {
	var p page
	var object string
	var data []json.RawMessage
	m, ok := members(body)
	if !ok || !given(m["object"], &object) || object != "list" || !given(m["has_more"], &p.more) || !given(m["data"], &data) {
		return p, errors.New("Stripe's answer is no list")
	}
	for _, raw := range data {
		r, err := decode(raw)
		if err != nil {
			return p, err
		}
		p.items = append(p.items, r)
	}
	if p.more && len(p.items) == 0 {
		return p, errors.New("Stripe's list says that there is more after nothing")
	}
	return p, nil
}

func validIntent(id string) bool { return validID(id, "pi_") }

// whose reads of a PaymentIntent, or a refund, what tells whose it is.
func whose(raw json.RawMessage, want string, valid func(id string) bool) (id string, metadata map[string]string, err error) {
	var object string
	item, ok := members(raw)
	if !ok || !given(item["object"], &object) || object != want || !given(item["id"], &id) || !valid(id) {
		return "", nil, fmt.Errorf("Stripe's list has an item that is no %s", want)
	}
	if value, ok := item["metadata"]; !ok || json.Unmarshal(value, &metadata) != nil {
		return "", nil, errors.New("Stripe's list has an item without readable metadata")
	}
	return id, metadata, nil
}
