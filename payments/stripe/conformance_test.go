package stripe

import (
	"testing"

	"github.com/oncepay/oncepay/payments/paymentstest"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// TestConformance runs the suite that every Gateway passes, on the simulator.
func TestConformance(t *testing.T) {
	t.Parallel()
	paymentstest.Gateway(t, func(t *testing.T) paymentstest.Stripe {
		s := newSim(t, stripesim.Options{})
		return paymentstest.Stripe{
			Gateway: s.Gateway, Namespace: testNamespace, RequestVersion: RequestVersion, TenantID: "acme", Customer: "cus_1", Now: s.Now,
			Posts: func() int { return int(s.Summary().Posts) },
			Post:  func(path, form string) (string, error) { return post(t.Context(), s.base.String(), s.key, path, form) },
			Body:  bodyOf,
		}
	})
}
