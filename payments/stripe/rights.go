package stripe

import (
	"context"
	"errors"
	"net/http"
)

// MayRead reads one PaymentIntent and one event, as look-ups and rewinds read them all, and says what the key is kept from; nil: nothing. A restricted key
// may charge well and be kept from either, and what is in doubt would stay so. CodeInvalid, with the permission to give, for each; CodeUnavailable.
func (g *Gateway) MayRead(ctx context.Context) error {
	return errors.Join(
		g.mayRead(ctx, createPath, `may not read PaymentIntents (403), without which nothing in doubt can be looked up; give it "PaymentIntents: Write", which includes reading them`),
		g.mayRead(ctx, eventsPath, `may not read events (403), without which nobody can tell that a payment is not there; give it "Events: Read"`),
	)
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
	g := a.own
	if tenantID != "" {
		var err error
		if g, _, err = a.gateway(ctx, tenantID); err != nil {
			return err
		}
	}
	return g.MayRead(ctx)
}
