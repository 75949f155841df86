//go:build !race

package tenants

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/consumer"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/payments/stripe"
	"github.com/oncepay/oncepay/payments/stripesim"
	"github.com/oncepay/oncepay/producer"
)

// calm times: nothing runs out while a call is slow or the machine busy.
var calm = world.Times{Lease: 20 * time.Second, Call: 10 * time.Second, AckWait: 15 * time.Second, Backoff: payments.BackoffDefault, Hold: 10 * time.Second}

// third is a tenant beside tenant and rival.
const third = "initech"

// crowd is a world of several tenants and workers without fault, and what they have got done.
type crowd struct {
	*world.World
	settled  map[string]*atomic.Int64 // outcomes, by tenant
	stored   atomic.Int64             // payments stored before their turn
	requests atomic.Int64             // calls to Stripe
	limited  atomic.Int64             // those of them that were answered 429
	inside   atomic.Int64             // calls under way
	most     atomic.Int64             // of them at once
}

func newCrowd(t *testing.T, limits stripesim.Limits) *crowd {
	t.Helper()
	c := &crowd{World: world.NewOf(t, calm), settled: map[string]*atomic.Int64{}}
	if _, err := c.Store.CreateTenant(t.Context(), postgres.Tenant{ID: third}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{world.Tenant, world.Rival, third} {
		c.settled[name] = &atomic.Int64{}
	}
	if err := c.Sim.SetLimits(limits); err != nil {
		t.Fatal(err)
	}
	return c
}

// backlog publishes n intents of a tenant, named from first on.
func (c *crowd) backlog(owner string, lane payments.Lane, first, n int) {
	c.Helper()
	nc := c.Connect(c.NATSURL, "producer")
	defer nc.Close()
	publisher, err := producer.New(nc, c.Subjects, producer.Options{})
	if err != nil {
		c.Fatal(err)
	}
	defer publisher.Close()
	messages := make([]producer.Message, n)
	for i := range messages {
		messages[i] = producer.Message{Lane: lane, Intent: payments.Intent{
			TenantID: owner, IdempotencyKey: "k" + strconv.Itoa(first+i), Amount: 4200, Currency: "usd", Customer: "cus_1", PaymentMethod: "pm_card_visa", OffSession: true,
		}}
	}
	for i, r := range publisher.PublishAll(c.Context(), messages) {
		if r.Err != nil {
			c.Fatalf("message %d: %v", i, r.Err)
		}
	}
}

// counting tells the crowd of every call.
type counting struct {
	payments.Gateway
	crowd *crowd
}

func (g counting) Submit(ctx context.Context, s payments.Submission) payments.Observation {
	now := g.crowd.inside.Add(1)
	defer g.crowd.inside.Add(-1)
	for most := g.crowd.most.Load(); now > most && !g.crowd.most.CompareAndSwap(most, now); most = g.crowd.most.Load() {
	}
	o := g.Gateway.Submit(ctx, s)
	if o.Kind != payments.ObservedHeldBack {
		g.crowd.requests.Add(1)
	}
	if o.Kind == payments.ObservedRateLimited {
		g.crowd.limited.Add(1)
	}
	return o
}

// work starts a worker without a relay; the test's end stops it.
func (c *crowd) work(concurrency int, rate float64) *consumer.Worker {
	c.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	log := c.Logs.Logger("worker")
	store, err := postgres.Open(ctx, c.DSN, postgres.Options{PoolSize: 8, Namespace: world.Namespace, RequestVersion: stripe.RequestVersion, Rate: rate, Logger: log})
	if err != nil {
		c.Fatal(err)
	}
	nc := c.Connect(c.NATSURL, "worker")
	js, err := jetstream.New(nc)
	if err != nil {
		c.Fatal(err)
	}
	var gateway *stripe.Gateway
	c.Await("Stripe", func() (bool, string) { // as production does: others may be using up what the simulator answers
		gateway, err = stripe.New(ctx, stripe.Options{Key: world.StripeKey, URL: c.SimURL, Namespace: world.Namespace, Timeout: c.Times.Call, Logger: log})
		if err != nil && !payments.Retryable(err) {
			c.Fatal(err)
		}
		return err == nil, fmt.Sprint(err)
	})
	port := counting{gateway, c}
	w, err := consumer.New(consumer.Config{
		JetStream: js, Subjects: c.Subjects, Store: store, Batches: store, Clock: app.SystemClock{}, Concurrency: concurrency, Lease: c.Times.Lease, NewToken: app.NewToken, Log: log,
		Processor: &payments.Processor{
			Store: store, Gateway: port, Clock: app.SystemClock{}, Namespace: world.Namespace, Lease: c.Times.Lease, CallTimeout: c.Times.Call, TriesMax: 20, Backoff: c.Times.Backoff,
		},
		Observer: consumer.Observer{
			Settled: func(_ payments.Lane, s payments.Settlement, _ time.Duration) {
				if s.Err == nil {
					c.settled[s.Recorded.Payment.TenantID].Add(1)
				}
			},
			Message: func(_ payments.Lane, fate string) {
				if fate == "scouted" {
					c.stored.Add(1)
				}
			},
		},
	})
	if err != nil {
		c.Fatal(err)
	}
	go func() {
		defer close(ended)
		if err := w.Run(ctx, 20*time.Second); err != nil {
			c.Errorf("Run: %v", err)
		}
		closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		nc.Close()
		if err := store.Close(closing); err != nil {
			c.Error(err)
		}
		gateway.Close()
	}()
	c.Cleanup(func() { stop(); <-ended })
	return w
}

func (c *crowd) done(owner string) int { return int(c.settled[owner].Load()) }

// awaitDone waits for n outcomes of a tenant.
func (c *crowd) awaitDone(owner string, n int) {
	c.Helper()
	c.Await(fmt.Sprintf("outcome %d of %s", n, owner), func() (bool, string) { return c.done(owner) >= n, strconv.Itoa(c.done(owner)) })
}

// soon is how long a single payment may take behind any backlog of somebody else.
const soon = 5 * time.Second

// A single payment behind a backlog of another tenant is submitted soon: its tenant's share of the slots, or of the rate, is its own. It may
// come while the backlog is worked off, or stand behind it when the worker starts.
func TestSingleBehindBacklog(t *testing.T) {
	t.Parallel()
	const backlog = 50_000
	for name, test := range map[string]struct {
		lane        payments.Lane
		limits      stripesim.Limits
		rate        float64
		concurrency int
		first       bool
		fair        time.Duration // its share of a rate, beyond soon
	}{
		"unlimited":          {lane: payments.LaneInteractive, concurrency: 512},
		"bulk, at the start": {lane: payments.LaneBulk, concurrency: 512, first: true},
		"slow calls":         {lane: payments.LaneInteractive, concurrency: 64, limits: stripesim.Limits{LatencyMS: 300}},
		"at 50 a second": {lane: payments.LaneInteractive, concurrency: 64, limits: stripesim.Limits{RPS: 50, Burst: 10, LatencyMS: 20}, rate: 50,
			fair: 2 * time.Second / 50},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrowd(t, test.limits)
			c.backlog(world.Tenant, test.lane, 0, backlog)
			began := time.Now()
			if test.first {
				c.backlog(world.Rival, test.lane, 0, 1)
			}
			c.work(test.concurrency, test.rate)
			if !test.first {
				c.awaitDone(world.Tenant, 50)
				began = time.Now()
				c.backlog(world.Rival, test.lane, 0, 1)
			}
			c.awaitDone(world.Rival, 1)
			took, before := time.Since(began), c.done(world.Tenant)
			t.Logf("%v after it was published, with %d of the others done", took, before)
			if took > soon+test.fair || before > backlog/2 {
				t.Errorf("took %v, and %d of the %d before it were done", took, before, backlog)
			}
		})
	}
}

// Tenants with many payments share: behind a backlog of another each gets about its part of what is done, whatever bounds that.
func TestTenantsShare(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lane        payments.Lane
		limits      stripesim.Limits
		rate        float64
		concurrency int
		workers     int
		rivals      []string
		each        int // payments of each rival that are looked at
	}{
		"three tenants": {lane: payments.LaneInteractive, concurrency: 96, workers: 1, limits: stripesim.Limits{LatencyMS: 100}, rivals: []string{world.Rival, third},
			each: 600},
		"two workers": {lane: payments.LaneBulk, concurrency: 128, workers: 2, limits: stripesim.Limits{LatencyMS: 100}, rivals: []string{world.Rival}, each: 1000},
		"at 100 a second": {lane: payments.LaneInteractive, concurrency: 256, workers: 1, limits: stripesim.Limits{RPS: 100, Burst: 10, LatencyMS: 50}, rate: 100,
			rivals: []string{world.Rival, third}, each: 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrowd(t, test.limits)
			c.backlog(world.Tenant, test.lane, 0, 30_000)
			for _, r := range test.rivals {
				c.backlog(r, test.lane, 0, 5000)
			}
			for range test.workers {
				c.work(test.concurrency, test.rate)
			}
			for _, r := range test.rivals {
				c.awaitDone(r, test.each/4)
			}
			began, before := time.Now(), map[string]int{}
			for owner := range c.settled {
				before[owner] = c.done(owner)
			}
			for _, r := range test.rivals {
				c.awaitDone(r, before[r]+test.each)
			}
			all, parts := 0, map[string]int{}
			for owner := range c.settled {
				parts[owner] = c.done(owner) - before[owner]
				all += parts[owner]
			}
			t.Logf("%v in %v, %d stored before their turn", parts, time.Since(began), c.stored.Load())
			for _, owner := range append([]string{world.Tenant}, test.rivals...) {
				fair := float64(all) / float64(1+len(test.rivals))
				if part := float64(parts[owner]); part < fair/3 || part > 2*fair { // in turn of the stream the rivals would have nothing; a busy machine's scout brings them late
					t.Errorf("%s: %.0f of %d, and %.0f would be fair", owner, part, all, fair)
				}
			}
		})
	}
}
