package app

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/oncepay/oncepay/ingress"
	"github.com/oncepay/oncepay/payments"
)

// front is what ONCEPAY_HTTP_ADDR serves: health and metrics from the first moment on, and the API as soon as there is a store for it. It waits for
// neither NATS nor Stripe: a payment is accepted by the commit of its row.
type front struct {
	health http.Handler
	api    atomic.Pointer[http.Handler]
}

func newFront(health http.Handler) *front { return &front{health: health} }

// open serves the API from now on.
func (f *front) open(api http.Handler) { f.api.Store(&api) }

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	api := f.api.Load()
	switch {
	case r.URL.Path == "/healthz" || r.URL.Path == "/readyz" || r.URL.Path == "/metrics":
		f.health.ServeHTTP(w, r)
	case api != nil:
		(*api).ServeHTTP(w, r)
	default:
		ingress.Closed(w)
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
		Store: v.store, Batches: v.store, Reader: v.store, Keys: v.store, Unpublished: v.store.Unpublished, UnpublishedMax: v.settings.Unpublished,
		Actions: actions{v}, Rate: v.settings.APIRate, Clock: SystemClock{}, Log: v.log,
		Observer: ingress.Observer{Request: v.metrics.Request},
	})
	if err != nil {
		return err
	}
	v.open.open(v.api.Handler())
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
