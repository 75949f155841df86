package postgres

import (
	"context"
	"fmt"
	"testing"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest"
)

// TestConformance runs the suite that every Store passes.
func TestConformance(t *testing.T) {
	t.Parallel()
	conformance(t, 0)
}

// TestConformanceWithARate: as long as there is room, a rate changes nothing.
func TestConformanceWithARate(t *testing.T) {
	t.Parallel()
	conformance(t, 1e6)
}

func conformance(t *testing.T, rate float64) {
	paymentstest.Store(t, func(t *testing.T) paymentstest.Database {
		b := paced(t, rate, func(o *Options) { o.Committed = nil }) // so that the outbox holds nothing back
		ctx := context.Background()
		if _, err := b.CreateTenant(ctx, Tenant{ID: "initech"}); err != nil {
			t.Fatal(err)
		}
		return paymentstest.Database{
			Store: b.Store, Outbox: b.Store, Now: b.clock.Now, Advance: b.clock.Advance, Tenants: [3]string{"acme", "globex", "initech"},
			Another: func() payments.Store { return b.another(Options{Clock: b.clock, PoolSize: 4, Rate: rate}) },
			Violations: func() []string {
				list, err := b.TicketViolations(ctx)
				if err != nil {
					t.Fatalf("TicketViolations: %v", err)
				}
				var found []string
				for _, v := range list {
					found = append(found, fmt.Sprintf("%+v", v))
				}
				return found
			},
		}
	})
}
