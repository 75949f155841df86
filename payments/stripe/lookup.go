package stripe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// The window in which a payment's PaymentIntent can have been created, around its first and last send: clocks differ, and Stripe may
// execute late.
const (
	lookBefore = 5 * time.Minute
	lookAfter  = time.Hour
)

const (
	pageSize = 100
	// pagesMax bounds one look-up at a million records; a listing that is longer proves nothing.
	pagesMax = 10_000
)

// listing is one query of Stripe's records.
type listing struct {
	customer string
	from, to time.Time // zero: open
}

// Look lists Stripe's records in which the payment's PaymentIntent must be, if there is one: those of its customer, or all, created around
// its sends. Only a listing that was read to its end is records.
func (g *Gateway) Look(ctx context.Context, p payments.Payment, progress func() error) payments.Observation {
	switch {
	case p.StripeAccount == "":
		return g.noRecords(unpinned)
	case g.foreign(p):
		return g.foreignAccount()
	}
	l := listing{customer: p.Customer}
	if !p.FirstSubmitAt.IsZero() {
		l.from = p.FirstSubmitAt.Add(-lookBefore)
		last := p.LastSubmitAt
		if last.Before(p.FirstSubmitAt) {
			last = p.FirstSubmitAt
		}
		l.to = last.Add(lookAfter)
	}
	me := newSeat(p, progress)
	if l.customer != "" {
		o, e := g.list(ctx, p, l, []*seat{me})
		if o.Kind != payments.ObservedNoRecords || e.Code != "resource_missing" {
			return me.result(o)
		}
		// Stripe knows no such customer, or none any more: the listing without it has the payment all the same.
		l.customer = ""
		me = newSeat(p, progress)
	}
	return g.share(ctx, p, l, me)
}

// list reads one listing to its end for everybody who has a seat. p is the payment whose id stands in the log if something is wrong.
func (g *Gateway) list(ctx context.Context, p payments.Payment, l listing, seats []*seat) (payments.Observation, apiError) {
	if l.to.After(g.clock.Now()) {
		// An end that is still to come could cut off only what Stripe's clock, ahead of ours, has dated after it: then what is there would
		// be taken for absent, and sent again.
		l.to = time.Time{}
	}
	after := ""
	for range g.pagesMax {
		if seats = extend(seats); len(seats) == 0 {
			return g.noRecords("the look-up was ended before a page"), apiError{}
		}
		query := l.fields(after)
		x := get(createPath, encode(query))
		g.do(ctx, x)
		o, e, ok := g.readable(p, x)
		if !ok {
			return o, e
		}
		page, err := decodePage(x.body)
		if err != nil {
			o.Detail, o.Trouble = err.Error(), true
			return o, apiError{}
		}
		for _, item := range page.items {
			if item.metadata[MetadataNamespace] == g.namespace {
				offer(seats, item)
			}
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

func (g *Gateway) noRecords(detail string) payments.Observation {
	return payments.Observation{Kind: payments.ObservedNoRecords, Account: g.account, Detail: detail}
}

// fields returns the query, sorted. The window's ends are whole seconds, outwards.
func (l listing) fields(after string) []field {
	var fields []field
	if !l.from.IsZero() {
		fields = append(fields, field{"created[gte]", strconv.FormatInt(l.from.Unix(), 10)})
	}
	if !l.to.IsZero() {
		fields = append(fields, field{"created[lte]", strconv.FormatInt(l.to.Add(time.Second-1).Unix(), 10)})
	}
	if l.customer != "" {
		fields = append(fields, field{"customer", l.customer})
	}
	fields = append(fields, field{"limit", strconv.Itoa(pageSize)})
	if after != "" {
		fields = append(fields, field{"starting_after", after})
	}
	return fields
}

// record is one PaymentIntent of a page, read only as far as needed to tell whose it is.
type record struct {
	id       string
	metadata map[string]string
	raw      json.RawMessage
}

type page struct {
	items []record
	more  bool
}

// decodePage reads a list. Whatever it lacks, above all has_more, makes it no page: an empty page must not pass for "nothing there".
func decodePage(body []byte) (page, error) {
	var p page
	var object string
	var data []json.RawMessage
	m, ok := members(body)
	if !ok || !given(m["object"], &object) || object != "list" || !given(m["has_more"], &p.more) || !given(m["data"], &data) {
		return p, fmt.Errorf("Stripe's answer is no list")
	}
	for _, raw := range data {
		item, ok := members(raw)
		r := record{raw: raw}
		if !ok || !given(item["object"], &object) || object != "payment_intent" || !given(item["id"], &r.id) || !validID(r.id, "pi_") {
			return p, fmt.Errorf("Stripe's list has an item that is no PaymentIntent")
		}
		if value, ok := item["metadata"]; !ok || json.Unmarshal(value, &r.metadata) != nil {
			return p, fmt.Errorf("Stripe's list has an item without readable metadata")
		}
		p.items = append(p.items, r)
	}
	if p.more && len(p.items) == 0 {
		return p, fmt.Errorf("Stripe's list says that there is more after nothing")
	}
	return p, nil
}
