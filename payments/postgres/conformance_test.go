package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

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
type patient struct{ *Store }

func (p patient) Take(ctx context.Context, r payments.TakeRequest) (payments.Taking, error) {
	for {
		got, err := p.Store.Take(ctx, r)
		if err != nil || len(got.Claims) > 0 || got.Wait == 0 {
			return got, err
		}
		time.Sleep(time.Millisecond)
		p.budgets.mu.Lock()
		clear(p.budgets.busy)
		p.budgets.mu.Unlock()
	}
}

func conformance(t *testing.T, rate float64) {
	paymentstest.Store(t, func(t *testing.T) paymentstest.Database {
		b := paced(t, rate, func(o *Options) { o.Committed = nil }) // so that the outbox holds nothing back
		ctx := context.Background()
		if _, err := b.CreateTenant(ctx, Tenant{ID: "initech"}); err != nil {
			t.Fatal(err)
		}
		return paymentstest.Database{
			Store: patient{b.Store}, Outbox: b.Store, Now: b.clock.Now, Advance: b.clock.Advance, Tenants: [3]string{"acme", "globex", "initech"},
			Another: func() payments.Store { return patient{b.another(Options{Clock: b.clock, PoolSize: 4, Rate: rate})} },
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
