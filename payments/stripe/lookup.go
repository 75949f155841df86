package stripe

import (
	"context"
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
// its sends. When a listing that was read to its end shows none, the events of that time are read as well; only then there is none.
func (g *Gateway) Look(ctx context.Context, p payments.Payment, progress func() error) payments.Observation {
	switch {
	case p.StripeAccount == "":
		return g.noRecords(unpinned)
	case g.foreign(p):
		return g.foreignAccount()
	}
	l := around(p)
	o := g.lookInList(ctx, p, l, progress)
	if o.Kind != payments.ObservedRecords || len(o.Found) > 0 {
		return o
	}
	l.customer = ""
	return g.lookInEvents(ctx, p, l, progress)
}

// around is the listing of what can be the payment's.
func around(p payments.Payment) listing {
	l := listing{customer: p.Customer}
	if !p.FirstSubmitAt.IsZero() {
		l.from = p.FirstSubmitAt.Add(-lookBefore)
		last := p.LastSubmitAt
		if last.Before(p.FirstSubmitAt) {
			last = p.FirstSubmitAt
		}
		l.to = last.Add(lookAfter)
	}
	return l
}

func (g *Gateway) lookInList(ctx context.Context, p payments.Payment, l listing, progress func() error) payments.Observation {
	me := newSeat(p, progress)
	if l.customer != "" {
		o, e := g.list(ctx, p, l, []*seat{me})
		if o.Kind != payments.ObservedNoRecords || e.Code != resourceMissing {
			return me.result(o)
		}
		// Stripe knows no such customer, or none any more: the listing without it has the payment all the same.
		l.customer = ""
		me = newSeat(p, progress)
	}
	return g.share(ctx, &g.board, p, l, me)
}

// list reads one listing to its end for everybody who has a seat. p is the payment whose id stands in the log if something is wrong.
func (g *Gateway) list(ctx context.Context, p payments.Payment, l listing, seats []*seat) (payments.Observation, apiError) {
	return g.pages(ctx, pages{
		payment: p, path: createPath, query: l.at(g.clock.Now()).fields, decode: decodePage, most: g.pagesMax,
		before: func() bool { seats = extend(seats); return len(seats) > 0 },
		item: func(r record) {
			if r.metadata[MetadataNamespace] == g.namespace {
				offer(seats, r)
			}
		},
	})
}

func (g *Gateway) noRecords(detail string) payments.Observation {
	return payments.Observation{Kind: payments.ObservedNoRecords, Account: g.account, Detail: detail}
}

// at is the listing as it is read now. An end that is still to come could cut off only what Stripe's clock, ahead of ours, has dated after it:
// then what is there would be taken for absent, and sent again.
func (l listing) at(now time.Time) listing {
	if l.to.After(now) {
		l.to = time.Time{}
	}
	return l
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
