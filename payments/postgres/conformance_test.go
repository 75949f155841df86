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

// TestConformanceWithARate: as long as there is room, and whoever is told to wait does, a rate changes nothing.
func TestConformanceWithARate(t *testing.T) {
	t.Parallel()
	conformance(t, 1e6)
}

// patient asks again where somebody else had the budget, as every worker does; the clock of these tests does not move by itself.
type patient struct{ *bench }

func (p patient) Take(ctx context.Context, r payments.TakeRequest) (got payments.Taking, err error) {
	p.until("a budget that nobody else has", func() bool {
		if got, err = p.Store.Take(ctx, r); err != nil || len(got.Claims) > 0 || got.Wait == 0 {
			return true
		}
		p.budgets.mu.Lock()
		defer p.budgets.mu.Unlock()
		clear(p.budgets.busy)
		return false
	})
	return got, err
}

func conformance(t *testing.T, rate float64) {
	paymentstest.Store(t, func(t *testing.T) paymentstest.Database {
		b := paced(t, rate, func(o *Options) { o.Committed = nil }) // so that the outbox holds nothing back
		ctx := context.Background()
		if _, err := b.CreateTenant(ctx, Tenant{ID: "initech"}); err != nil {
			t.Fatal(err)
		}
		return paymentstest.Database{
			Store: patient{b}, Outbox: b.Store, Batches: b.Store, Reader: b.Store, FollowUps: b.Store, Intents: b.Intents, Now: b.clock.Now, Advance: b.clock.Advance, Tenants: [3]string{"acme", "globex", "initech"},
			Another: func() payments.Store {
				return patient{&bench{Store: b.another(Options{Clock: b.clock, PoolSize: 4, Rate: rate}), t: b.t, clock: b.clock}}
			},
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
