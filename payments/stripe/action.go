package stripe

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/oncepay/oncepay/payments"
)

// Action reads what the customer has to do next for a payment that requires an action: Stripe's next_action as it stands, nil when there is none
// any more, and the client_secret that Stripe.js wants. Both are for the owning tenant's own request alone: they are stored and logged nowhere.
// CodeUnavailable: Stripe did not answer now; CodeInvalid: the payment has no PaymentIntent that could be asked for from here.
func (g *Gateway) Action(ctx context.Context, p payments.Payment) (nextAction []byte, clientSecret string, err error) {
	if p.StripeAccount == "" || g.foreign(p) || !validID(p.StripePaymentIntent, "pi_") {
		return nil, "", payments.Errorf(payments.CodeInvalid, "the payment has no PaymentIntent of this Stripe account")
	}
	x := get(createPath+"/"+p.StripePaymentIntent, "")
	g.do(ctx, x)
	if x.bug != nil || x.err != nil || x.status != http.StatusOK {
		return nil, "", payments.Errorf(payments.CodeUnavailable, "Stripe did not answer")
	}
	m, ok := members(x.body)
	var id string
	if !ok || !text(m["id"], &id) || id != p.StripePaymentIntent || !text(m["client_secret"], &clientSecret) {
		return nil, "", payments.Errorf(payments.CodeUnavailable, "Stripe's answer cannot be read")
	}
	if there(m["next_action"]) && json.Valid(m["next_action"]) {
		nextAction = m["next_action"]
	}
	return nextAction, clientSecret, nil
}

// Action is Gateway.Action by the tenant's own way to Stripe.
func (a *Accounts) Action(ctx context.Context, p payments.Payment) (nextAction []byte, clientSecret string, err error) {
	g, _, err := a.gateway(ctx, p.TenantID)
	if err != nil {
		return nil, "", err
	}
	return g.Action(ctx, p)
}
