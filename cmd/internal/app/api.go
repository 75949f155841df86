package app

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/oncepay/oncepay/ingress"
	"github.com/oncepay/oncepay/ingress/apidoc"
	"github.com/oncepay/oncepay/payments"
)

// front is what ONCEPAY_HTTP_ADDR serves: health and metrics from the first moment on, and the API as soon as there is a store for it. It waits for
// neither NATS nor Stripe: a payment is accepted by the commit of its row.
type front struct {
	health http.Handler
	api    atomic.Pointer[http.Handler]
}

func newFront(health http.Handler) *front {
	f := &front{health: health}
	f.open(ingress.Closed())
	return f
}

// open serves the API from now on.
func (f *front) open(api http.Handler) { f.api.Store(&api) }

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/healthz", "/readyz", "/metrics":
		f.health.ServeHTTP(w, r)
	default:
		(*f.api.Load()).ServeHTTP(w, r)
	}
}

// plays reports whether the process plays the role. Without an address the ingress has nobody to serve.
func (v *service) plays(role string) bool {
	return slices.Contains(v.settings.Roles, role) && (role != RoleIngress || v.front != nil)
}

// openAPI makes the API on the store and opens the door for it.
func (v *service) openAPI() (err error) {
	if !v.plays(RoleIngress) {
		return nil
	}
	v.api, err = ingress.New(ingress.Config{
		Store: v.store, FollowUps: v.store, Batches: v.store, Reader: v.store, FollowUpReader: v.store, Keys: v.store, Unpublished: v.store.Unpublished, UnpublishedMax: v.settings.Unpublished,
		Actions: actions{v}, Docs: apidoc.Handler(), Rate: v.settings.APIRate, Clock: SystemClock{}, Log: v.log,
		Observer: ingress.Observer{Request: v.metrics.Request},
	})
	if err != nil {
		return err
	}
	v.open.open(v.api.Handler())
	v.health.StartReady(v.checks())
	return nil
}

// actions asks Stripe for what a customer has to do next, once this process knows its way there.
type actions struct{ v *service }

// Action implements ingress.Actions.
func (a actions) Action(ctx context.Context, p payments.Payment) (nextAction []byte, clientSecret string, err error) {
	accounts := a.v.stripe.Load()
	if accounts == nil {
		return nil, "", payments.Errorf(payments.CodeUnavailable, "this process does not know Stripe")
	}
	return accounts.Action(ctx, p)
}
