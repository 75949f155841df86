package crashtest

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/deploy/devstack"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/migrations"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// outageTimes leave room for hundreds of payments at once, and are still shorter than the outages.
var outageTimes = times{
	lease: 3 * time.Second, call: 1500 * time.Millisecond, ackWait: 2 * time.Second, hold: time.Second,
	backoff: payments.Backoff{First: 50 * time.Millisecond, Max: 500 * time.Millisecond, SoonMax: 100 * time.Millisecond},
}

// drillTimes leave Stripe time to hold 500 payments at once on a slow machine.
var drillTimes = times{
	lease: 9 * time.Second, call: 8 * time.Second, ackWait: 6 * time.Second, hold: time.Second, backoff: outageTimes.backoff,
}

// outage is for the drill at full scale: -outage 5m -run TestOutages -timeout 20m uses the times of production.
var outage = flag.Duration("outage", 0, "how long PostgreSQL and NATS are away in TestOutages, with the times of production; 0: scaled down")

// productionTimes are the defaults of the settings.
var productionTimes = times{lease: 45 * time.Second, call: 30 * time.Second, ackWait: 30 * time.Second, hold: 10 * time.Second, backoff: payments.BackoffDefault}

// TestOutages takes PostgreSQL away for longer than a lease, with 500 payments at Stripe that it has not answered yet, and then NATS for half as
// long, with 500 more. Everything goes on by itself; nothing is lost, nothing is charged twice, nothing becomes a dead letter, and nobody's budget
// of tries is spent on it.
func TestOutages(t *testing.T) {
	t.Parallel()
	pace, away := drillTimes, drillTimes.lease+time.Second
	if *outage > 0 {
		pace, away = productionTimes, *outage
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute+2*away)
	defer cancel()
	w, pg, broker := newFragileWorld(ctx, t, pace)
	if err := w.sim.SetLimits(stripesim.Limits{LatencyMS: int(pace.call.Milliseconds()) / 2}); err != nil {
		t.Fatal(err)
	}
	const each = 500 / scale
	w.start(workerOptions{name: "worker 1", concurrency: each})
	w.start(workerOptions{name: "worker 2", concurrency: each})

	w.fillStripe(ctx, "first", each)
	if err := pg.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	pass(ctx, t, away)
	if err := pg.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	w.rest()
	t.Logf("PostgreSQL was away for %v with %d payments at Stripe; %v after its return all had their outcome", away, each, time.Since(back).Round(100*time.Millisecond))

	w.fillStripe(ctx, "second", each)
	broker.Stop()
	pass(ctx, t, away/2)
	if err := broker.Restart(); err != nil {
		t.Fatal(err)
	}
	back = time.Now()
	a := w.mustBeGood(0)
	t.Logf("NATS was away for %v with %d more; %v after its return all was told", away/2, each, time.Since(back).Round(100*time.Millisecond))
	if len(a.Charges) != 2*each {
		t.Errorf("%d charges, want %d", len(a.Charges), 2*each)
	}
	w.mustHaveSpentNoTries()
}

// fillStripe publishes orders until Stripe has all of them and has answered none.
func (w *world) fillStripe(ctx context.Context, name string, n int) {
	w.Helper()
	requests, charged := w.sim.Summary().Requests, w.sim.Summary().Charges
	w.publishMany(name, n)
	if err := w.sim.WaitRequests(ctx, requests+n); err != nil {
		w.Fatal(err)
	}
	if now := w.sim.Summary().Charges; now != charged {
		w.Fatalf("Stripe charged %d payments before it had all %d: this machine is too slow for the times of the case", now-charged, n)
	}
}

// mustHaveSpentNoTries wants the whole budget of tries left to every payment.
func (w *world) mustHaveSpentNoTries() {
	w.Helper()
	for cursor, first := "", true; first || cursor != ""; first = false {
		page, next, err := w.store.List(w.Context(), payments.ListRequest{TenantID: tenant, Limit: payments.LimitMax, Cursor: cursor})
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

// newFragileWorld is a world on servers of its own, which may go away.
func newFragileWorld(ctx context.Context, t *testing.T, pace times) (*world, *devstack.Postgres, *devstack.NATS) {
	t.Helper()
	pg, err := devstack.StartPostgres(ctx, devstack.PostgresOptions{FastUnsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pg.Close() })
	broker, err := devstack.StartNATS(devstack.NATSOptions{FastUnsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Close() })
	if err := pg.CreateDatabase(ctx, "outage"); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Up(ctx, pg.DSN("outage")); err != nil {
		t.Fatal(err)
	}
	return newWorldAt(t, place{dsn: pg.DSN("outage"), nats: broker.URL(), times: pace}), pg, broker
}

// TestStripeAway cuts every connection to Stripe for longer than two leases, with hundreds of payments on their way, and every new one.
func TestStripeAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wire := devstacktest.NewProxy(t, w.simURL)
	w.simURL = devstacktest.Via(t, w.simURL, wire.Addr())
	if err := w.sim.SetLimits(stripesim.Limits{LatencyMS: 100}); err != nil {
		t.Fatal(err)
	}
	w.start(workerOptions{name: "worker 1", concurrency: 100})
	w.start(workerOptions{name: "worker 2", concurrency: 100})
	requests := w.sim.Summary().Requests
	const intents = 250 / scale
	w.publishMany("order", intents)
	if err := w.sim.WaitRequests(t.Context(), requests+intents/4); err != nil {
		t.Fatal(err)
	}
	wire.Cut()
	pass(t.Context(), t, 2*w.times.lease+time.Second)
	wire.Heal()
	if a := w.mustBeGood(0); len(a.Charges) != intents {
		t.Errorf("%d charges, want %d", len(a.Charges), intents)
	}
}

// pass lets an outage last.
func pass(ctx context.Context, t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	}
}

// publishMany publishes n orders side by side and returns them once all have their PubAcks.
func (w *world) publishMany(name string, n int) []order {
	w.Helper()
	orders := make([]order, n)
	futures := make([]jetstream.PubAckFuture, n)
	subject := w.intentSubject(tenant)
	for i := range n {
		orders[i] = w.order(fmt.Sprintf("%s-%d", name, i))
		w.expect(orders[i])
		var err error
		if futures[i], err = w.js.PublishMsgAsync(&nats.Msg{Subject: subject, Data: orders[i].body(w)}, jetstream.WithStallWait(10*time.Second)); err != nil {
			w.Fatal(err)
		}
	}
	for i, f := range futures {
		select {
		case <-f.Ok():
			w.acknowledged(orders[i].id())
		case err := <-f.Err():
			w.Fatal(err)
		case <-time.After(20 * time.Second):
			w.Fatal("a PubAck did not come")
		}
	}
	return orders
}
