package outages

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// outage is for the drill at full scale: -outage 5m -run TestOutages -timeout 20m uses the times of production.
var outage = flag.Duration("outage", 0, "how long PostgreSQL and NATS are away in TestOutages, with the times of production; 0: scaled down")

// productionTimes are the defaults of the settings.
var productionTimes = world.Times{Lease: 45 * time.Second, Call: 30 * time.Second, AckWait: 30 * time.Second, Hold: 10 * time.Second, Backoff: payments.BackoffDefault}

// TestOutages takes PostgreSQL away for longer than a lease, with 500 payments at Stripe that it has not answered yet, and then NATS for half as
// long, with 500 more. Everything goes on by itself; nothing is lost, nothing is charged twice, nothing becomes a dead letter, and nobody's budget
// of tries is spent on it.
func TestOutages(t *testing.T) {
	t.Parallel()
	pace, away := world.DrillTimes, world.DrillTimes.Lease+time.Second
	if *outage > 0 {
		pace, away = productionTimes, *outage
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute+2*away)
	defer cancel()
	w, pg, broker := world.NewFragile(ctx, t, pace)
	const each = 500 / world.Scale
	w.Start(world.WorkerOptions{Name: "worker 1", Concurrency: each})
	w.Start(world.WorkerOptions{Name: "worker 2", Concurrency: each})

	answer := fillStripe(w, ctx, "first", each)
	if err := pg.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	answer()
	world.Pass(ctx, t, away)
	if err := pg.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	w.Rest()
	t.Logf("PostgreSQL was away for %v with %d payments at Stripe; %v after its return all had their outcome", away, each, time.Since(back).Round(100*time.Millisecond))

	answer = fillStripe(w, ctx, "second", each)
	broker.Stop()
	answer()
	world.Pass(ctx, t, away/2)
	if err := broker.Restart(); err != nil {
		t.Fatal(err)
	}
	back = time.Now()
	a := w.MustBeGood(0)
	t.Logf("NATS was away for %v with %d more; %v after its return all was told", away/2, each, time.Since(back).Round(100*time.Millisecond))
	if len(a.Charges) != 2*each {
		t.Errorf("%d charges, want %d", len(a.Charges), 2*each)
	}
	mustHaveSpentNoTries(w)
}

// fillStripe publishes orders until Stripe has all of them; it answers none before it is told to.
func fillStripe(w *world.World, ctx context.Context, name string, n int) (answer func()) {
	w.Helper()
	rule := stripesim.Rule{Match: stripesim.Match{Path: "/v1/payment_intents"}, Fault: stripesim.FaultCommitThenHang}
	if err := w.Sim.AddFault(rule); err != nil {
		w.Fatal(err)
	}
	w.PublishMany(name, n)
	if err := w.Sim.WaitHung(ctx, n); err != nil {
		w.Fatalf("%d of %d payments are at Stripe: %v", w.Sim.Summary().Hung, n, err)
	}
	return w.Sim.ClearFaults
}

// mustHaveSpentNoTries wants the whole budget of tries left to every payment.
func mustHaveSpentNoTries(w *world.World) {
	w.Helper()
	for cursor, first := "", true; first || cursor != ""; first = false {
		page, next, err := w.Store.List(w.Context(), payments.ListRequest{TenantID: world.Tenant, Limit: payments.LimitMax, Cursor: cursor})
		if err != nil {
			w.Fatal(err)
		}
		for _, p := range page {
			if p.Tries > 0 {
				w.Errorf("%s has spent %d tries on an outage", p.IdempotencyKey, p.Tries)
			}
		}
		cursor = next
	}
}

// TestStripeAway cuts every connection to Stripe for longer than two leases, with hundreds of payments on their way, and every new one.
func TestStripeAway(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	wire := devstacktest.NewProxy(t, w.SimURL)
	w.SimURL = devstacktest.Via(t, w.SimURL, wire.Addr())
	if err := w.Sim.SetLimits(stripesim.Limits{LatencyMS: 100}); err != nil {
		t.Fatal(err)
	}
	w.Start(world.WorkerOptions{Name: "worker 1", Concurrency: 100})
	w.Start(world.WorkerOptions{Name: "worker 2", Concurrency: 100})
	requests := w.Sim.Summary().Requests
	const intents = 250 / world.Scale
	w.PublishMany("order", intents)
	if err := w.Sim.WaitRequests(t.Context(), requests+intents/4); err != nil {
		t.Fatal(err)
	}
	wire.Cut()
	world.Pass(t.Context(), t, 2*w.Times.Lease+time.Second)
	wire.Heal()
	if a := w.MustBeGood(0); len(a.Charges) != intents {
		t.Errorf("%d charges, want %d", len(a.Charges), intents)
	}
}
