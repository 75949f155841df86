package stripe

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/oncepay/oncepay/payments"
)

const (
	eventsPath = "/v1/events"
	// eventsKept is how long Stripe lists events (docs.stripe.com/api/events/list). What is older is told by the list of PaymentIntents alone.
	eventsKept = 30 * 24 * time.Hour
)

// eventTypes are the events that a PaymentIntent of a window can have left in it. Each alone would do; the more there are, the less hangs on one.
var eventTypes = []string{
	"payment_intent.amount_capturable_updated", "payment_intent.canceled", "payment_intent.created", "payment_intent.payment_failed",
	"payment_intent.processing", "payment_intent.requires_action", "payment_intent.succeeded",
}

// lookInEvents looks among the events of the window, once the list shows nothing: an event tells of a PaymentIntent whatever its customer is, and
// of one that the list does not show yet. What an event tells of is read again, since the event has it as it was.
func (g *Gateway) lookInEvents(ctx context.Context, p payments.Payment, l listing, progress func() error) payments.Observation {
	me := newSeat(p, progress)
	if !l.to.IsZero() && l.to.Before(g.clock.Now().Add(-eventsKept)) {
		o := g.noRecords("")
		o.Kind, o.Detail = payments.ObservedRecords, "Stripe's records were read, and its events are gone by now"
		return me.result(o)
	}
	o := g.share(ctx, &g.events, p, l, me)
	if o.Kind != payments.ObservedRecords {
		return o
	}
	for _, id := range me.seen {
		if me.extend() != nil {
			return g.noRecords("the look-up was ended before what an event tells of was read")
		}
		q := p
		q.StripePaymentIntent = id
		switch read := g.Retrieve(ctx, q); {
		case read.Kind != payments.ObservedObject:
			return read
		case read.Object == nil:
			return g.noRecords("an event tells of a PaymentIntent that Stripe does not have")
		default:
			me.found = append(me.found, *read.Object)
		}
	}
	return me.result(o)
}

// listEvents reads the events of the window to their end for everybody who has a seat.
func (g *Gateway) listEvents(ctx context.Context, p payments.Payment, l listing, seats []*seat) payments.Observation {
	o, e := g.pages(ctx, pages{
		payment: p, path: eventsPath, query: l.at(g.clock.Now()).eventFields, decode: decodeEvents, most: g.pagesMax,
		before: func() bool { seats = extend(seats); return len(seats) > 0 },
		item: func(r record) {
			if r.metadata[MetadataNamespace] == g.namespace {
				mention(seats, r)
			}
		},
	})
	switch {
	case o.Kind == payments.ObservedRecords:
		o.Detail = "Stripe's records and events were read"
	case lacksRight(o, e):
		o.LacksRight, o.Detail = true, "the key "+mayNotReadEvents
		g.mayNotRead.Do(func() { g.log.Error("payments in doubt stay so: "+o.Detail, "account", g.account.ID) })
	}
	return o
}

// eventFields returns the query of the window's events, sorted.
func (l listing) eventFields(after string) []field {
	l.customer = ""
	fields := l.fields(after)
	for _, t := range eventTypes {
		fields = append(fields, field{"types[]", t})
	}
	return fields
}

// decodeEvents reads a list of events. One about a PaymentIntent that hides which or whose it is makes it no page.
func decodeEvents(body []byte) (page, error) {
	return decodeList(body, func(raw json.RawMessage) (record, error) {
		var r record
		var object string
		m, ok := members(raw)
		if !ok || !given(m["object"], &object) || object != "event" || !given(m["id"], &r.id) || !validID(r.id, "evt_") {
			return r, errors.New("Stripe's list has an item that is no event")
		}
		var about string
		if !given(m["type"], &about) {
			return r, errors.New("Stripe's list has an event without a type")
		}
		if !strings.HasPrefix(about, "payment_intent.") {
			return r, nil // not what was asked for, and about nothing of ours
		}
		data, _ := members(m["data"])
		var err error
		r.about, r.metadata, err = whose(data["object"], "payment_intent", validIntent)
		return r, err
	})
}
