package stripe

import (
	"context"
	"net/http"

	"github.com/oncepay/oncepay/payments"
)

// Retrieve reads the payment's PaymentIntent again. Stripe's own word that there is none is an object observed as absent; all other trouble
// proves nothing. That the payment belongs to another account proves nothing either, and leaves it pending.
func (g *Gateway) Retrieve(ctx context.Context, p payments.Payment) payments.Observation {
	switch {
	case p.StripeAccount == "":
		return g.noRecords(unpinned)
	case g.foreign(p):
		return g.noRecords(g.foreignAccount().Detail)
	}
	if !validID(p.StripePaymentIntent, "pi_") {
		return g.noRecords("the payment names no PaymentIntent")
	}
	x := get(createPath+"/"+p.StripePaymentIntent, "")
	g.do(ctx, x)
	o, e, ok := g.readable(p, x)
	if !ok {
		if x.status == http.StatusNotFound && e.Code == resourceMissing {
			o.Kind, o.Detail = payments.ObservedObject, "Stripe knows no such PaymentIntent"
		}
		return o
	}
	pi, err := decodeIntent(x.body)
	switch {
	case err != nil:
		o.Detail, o.Trouble = err.Error(), true
	case pi.ID != p.StripePaymentIntent:
		o.Detail = "Stripe answered with another PaymentIntent"
	default:
		o.Kind, o.Object, o.RetryAfter, o.Detail = payments.ObservedObject, &pi, 0, "the PaymentIntent was read"
	}
	return o
}
