package stripe

import (
	"context"
	"fmt"
	"slices"

	"github.com/oncepay/oncepay/payments"
)

// LookRefunds lists all refunds of the follow-up's PaymentIntent, to the end, and finds those that name the follow-up and our namespace. A refund
// of ours is of no other PaymentIntent, since its body says which; so that no window, and no events, are needed to know that there is none.
//
// Stripe's own word that it knows no such PaymentIntent is no empty list: that is told apart, since what was sent for it may stand elsewhere.
func (g *Gateway) LookRefunds(ctx context.Context, p payments.Payment, progress func() error) payments.Observation {
	switch {
	case p.StripeAccount == "":
		return g.noRecords(unpinned)
	case g.foreign(p):
		return g.foreignAccount()
	case !validID(p.StripePaymentIntent, "pi_"):
		return g.noRecords("the refund names no PaymentIntent")
	}
	var found []payments.Refund
	failed, read := "", 0
	o, e := g.pages(ctx, pages{
		payment: p, path: refundsPath, query: refundsOf(p.StripePaymentIntent), decode: decodeRefunds, most: g.pagesMax,
		before: func() bool { read++; return progress == nil || progress() == nil },
		item: func(item record) {
			if item.metadata[MetadataPayment] != refundName(p) || item.metadata[MetadataNamespace] != g.namespace {
				return
			}
			r, err := decodeRefund(item.raw)
			switch {
			case err != nil:
				failed = "a refund of ours cannot be read: " + err.Error()
			case !slices.ContainsFunc(found, func(f payments.Refund) bool { return f.ID == r.ID }): // the list can bring it twice
				found = append(found, r)
			}
		},
	})
	switch {
	case failed != "":
		o.Kind, o.Detail = payments.ObservedNoRecords, failed
	case o.Kind == payments.ObservedNoRecords && e.Code == resourceMissing && read == 1: // later it is the refund that the page was to follow
		o.Kind, o.Detail = payments.ObservedObject, "Stripe knows no such PaymentIntent"
	case o.Kind == payments.ObservedRecords:
		o.Refunds, o.Detail = found, fmt.Sprintf("Stripe's refunds were read: %d of this one", len(found))
	}
	return g.aboutRefunds(o, e)
}

// refundsOf is the query of a PaymentIntent's refunds, sorted.
func refundsOf(paymentIntent string) func(after string) []field {
	return func(after string) []field {
		fields := append(listing{}.fields(""), field{"payment_intent", paymentIntent})
		if after != "" {
			fields = append(fields, field{"starting_after", after})
		}
		return fields
	}
}
