package stripe

import (
	"context"
	"fmt"
	"net/http"

	"github.com/oncepay/oncepay/payments"
)

// Refund gives the follow-up's amount back. Exactly one HTTP request leaves, or none.
func (g *Gateway) Refund(ctx context.Context, s payments.Submission) payments.Observation {
	x, o := g.sendFollowUp(ctx, s, payments.KindRefund)
	if x == nil {
		return o
	}
	return g.observeRefund(s.Payment, x)
}

// observeRefund says what the exchange of a refund proves. Only a refund of the PaymentIntent that was asked for, and not another's, is one.
func (g *Gateway) observeRefund(p payments.Payment, x *exchange) payments.Observation {
	o, answered := g.answered(x)
	switch {
	case !answered:
		return o
	case x.status < 200 || x.status > 299:
		e, _ := decodeError(x.body)
		return g.aboutRefunds(g.observeError(x, o, refundRefused(p)), e)
	}
	r, err := decodeRefund(x.body)
	id, named := r.Metadata[MetadataPayment]
	switch {
	case err != nil:
		o.Detail = fmt.Sprintf("Stripe answered %d: %s", x.status, err)
	case named && id != refundName(p), r.PaymentIntent != p.StripePaymentIntent:
		o.Detail = "the answer is about another refund"
	default:
		o.Kind, o.Refund, o.Detail = payments.ObservedRefund, &r, fmt.Sprintf("Stripe answered %d", x.status)
	}
	return o
}

// refundRefused: the PaymentIntent, however it stands; for a refund never moves it.
func refundRefused(p payments.Payment) func(payments.ObservationKind, payments.PaymentIntent) bool {
	return func(_ payments.ObservationKind, pi payments.PaymentIntent) bool { return itself(p, pi) }
}

// refundName is the follow-up's id as a refund's metadata have it.
func refundName(p payments.Payment) string { return p.ID.Format(payments.KindRefund) }

// RetrieveRefund reads a refund again. Stripe's own word that there is none is a refund observed as absent; all other trouble proves nothing.
func (g *Gateway) RetrieveRefund(ctx context.Context, p payments.Payment, refundID string) payments.Observation {
	switch {
	case p.StripeAccount == "":
		return g.noRecords(unpinned)
	case g.foreign(p):
		return g.noRecords(g.foreignAccount().Detail)
	case !validRefund(refundID):
		return g.noRecords("the refund has no name at Stripe")
	}
	x := get(refundsPath+"/"+refundID, "")
	g.do(ctx, x)
	o, e, ok := g.readable(p, x)
	if !ok {
		if x.status == http.StatusNotFound && e.Code == resourceMissing {
			o.Kind, o.Detail = payments.ObservedRefund, "Stripe knows no such refund"
		}
		return g.aboutRefunds(o, e)
	}
	r, err := decodeRefund(x.body)
	switch {
	case err != nil:
		o.Detail, o.Trouble = err.Error(), true
	case r.ID != refundID:
		o.Detail = "Stripe answered with another refund"
	default:
		o.Kind, o.Refund, o.RetryAfter, o.Detail = payments.ObservedRefund, &r, 0, "the refund was read"
	}
	return o
}
