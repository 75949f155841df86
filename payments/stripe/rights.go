package stripe

import (
	"context"
	"errors"
	"net/http"

	"github.com/oncepay/oncepay/payments"
)

// What a key may be kept from, and what to give it then. Whoever may make refunds may read them.
const (
	mayNotReadIntents = `may not read PaymentIntents (403), without which nothing in doubt can be looked up; give it "PaymentIntents: Write", which includes reading them`
	mayNotReadEvents  = `may not read events (403), without which nobody can tell that a payment is not there; give it "Events: Read"`
	mayNotReadRefunds = `may not read refunds (403), without which none is made; give it "Charges and Refunds: Write", which includes reading them`
	mayNotMakeRefunds = `may not make refunds (403); give it "Charges and Refunds: Write"`
)

// MayRead reads one PaymentIntent and one event, as look-ups and rewinds read them all, and says what the key is kept from; nil: nothing. A restricted key
// may charge well and be kept from either, and what is in doubt would stay so. CodeInvalid, with the permission to give, for each; CodeUnavailable.
func (g *Gateway) MayRead(ctx context.Context) error {
	return errors.Join(g.mayRead(ctx, createPath, mayNotReadIntents), g.mayRead(ctx, eventsPath, mayNotReadEvents))
}

// MayReadRefunds is MayRead for what refunds alone need: nothing else does. Whether the key may also make them only a refund can tell.
func (g *Gateway) MayReadRefunds(ctx context.Context) error {
	return g.mayRead(ctx, refundsPath, mayNotReadRefunds)
}

// lacksRight reports whether an answer refuses the key for the want of a right. Of what charges do not need that is no word on them: the key charges well
// without, and they go on.
func lacksRight(o payments.Observation, e apiError) bool {
	return o.HTTPStatus == http.StatusForbidden && e.Type != "" && e.Code != accountInvalid
}

// aboutRefunds is an observation of refunds, which e was answered to: a key may lack the right to read or to make them.
func (g *Gateway) aboutRefunds(o payments.Observation, e apiError) payments.Observation {
	if !lacksRight(o, e) {
		return o
	}
	o.LacksRight, o.Detail = true, "the key "+mayNotReadRefunds
	if o.Kind == payments.ObservedUnauthorized {
		o.Detail = "the key " + mayNotMakeRefunds
	}
	g.mayNotRefund.Do(func() { g.log.Error("refunds wait: "+o.Detail, "account", g.account.ID) })
	return o
}

func (g *Gateway) mayRead(ctx context.Context, path, refusal string) error {
	x, err := g.startCall(ctx, path, encode([]field{{"limit", "1"}}))
	if err == nil && x.status == http.StatusForbidden {
		return g.subject.setting("ONCEPAY_STRIPE_KEY", refusal)
	}
	return err
}

// MayRead is Gateway.MayRead for the account that the tenant's payments go to; "" is the installation's own.
func (a *Accounts) MayRead(ctx context.Context, tenantID string) error {
	return a.asked(ctx, tenantID, (*Gateway).MayRead)
}

// MayReadRefunds is Gateway.MayReadRefunds for that account.
func (a *Accounts) MayReadRefunds(ctx context.Context, tenantID string) error {
	return a.asked(ctx, tenantID, (*Gateway).MayReadRefunds)
}

func (a *Accounts) asked(ctx context.Context, tenantID string, may func(*Gateway, context.Context) error) error {
	g := a.own
	if tenantID != "" {
		var err error
		if g, _, err = a.gateway(ctx, tenantID); err != nil {
			return err
		}
	}
	return may(g, ctx)
}
