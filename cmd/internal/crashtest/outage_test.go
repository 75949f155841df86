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

// outage is for the drill at full scale: -outage 30s -run TestOutages uses the times of production.
var outage = flag.Duration("outage", 0, "how long PostgreSQL and NATS are away in TestOutages, with the times of production; 0: scaled down")

// productionTimes are the defaults of the settings.
var productionTimes = times{lease: 45 * time.Second, call: 30 * time.Second, ackWait: 30 * time.Second, hold: 10 * time.Second, backoff: payments.BackoffDefault}

// TestOutages takes PostgreSQL away for longer than a lease, with hundreds of payments at Stripe, and then NATS, with hundreds more. Everything
// goes on by itself; nothing is lost, nothing is charged twice, and nobody's budget of tries is spent on it.
func TestOutages(t *testing.T) {
	t.Parallel()
	pace, away := outageTimes, outageTimes.lease+time.Second
	if *outage > 0 {
		pace, away = productionTimes, *outage
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute+2*away)
	defer cancel()
	w, pg, broker := newFragileWorld(ctx, t, pace)
	if err := w.sim.SetLimits(stripesim.Limits{LatencyMS: 400}); err != nil {
		t.Fatal(err)
	}
	const each = 300
	w.start(workerOptions{name: "worker 1", concurrency: each})
	w.start(workerOptions{name: "worker 2", concurrency: each})
	requests := w.sim.Summary().Requests

	w.publishMany("first", each)
	if err := w.sim.WaitRequests(ctx, requests+each/2); err != nil {
		t.Fatal(err)
	}
	if err := pg.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	pass(ctx, t, away)
	if err := pg.Restart(ctx); err != nil {
		t.Fatal(err)
	}

	requests = w.sim.Summary().Requests
	w.publishMany("second", each)
	if err := w.sim.WaitRequests(ctx, requests+each/2); err != nil {
		t.Fatal(err)
	}
	broker.Stop()
	pass(ctx, t, away/2)
	if err := broker.Restart(); err != nil {
		t.Fatal(err)
	}
	a := w.mustBeGood(0)
	if len(a.Charges) != 2*each {
		t.Errorf("%d charges, want %d", len(a.Charges), 2*each)
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
	const intents = 250
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
