package tenants

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// counted counts what is asked of Stripe.
type counted struct {
	payments.Gateway
	calls atomic.Int64
}

func (c *counted) Submit(ctx context.Context, s payments.Submission) payments.Observation {
	c.calls.Add(1)
	return c.Gateway.Submit(ctx, s)
}

func (c *counted) Look(ctx context.Context, p payments.Payment, progress func() error) payments.Observation {
	c.calls.Add(1)
	return c.Gateway.Look(ctx, p, progress)
}

// closable puts Stripe behind a port that can be closed: connections are then refused.
func closable(w *world.World) (shut, open func()) {
	w.Helper()
	var server *httptest.Server
	addr := "127.0.0.1:0"
	open = func() {
		w.Helper()
		listener, err := net.Listen("tcp", addr)
		if err != nil {
			w.Fatal(err)
		}
		server = httptest.NewUnstartedServer(w.Sim)
		server.Listener.Close()
		server.Listener, addr = listener, listener.Addr().String()
		server.Start()
	}
	open()
	w.SimURL = server.URL
	shut = func() { server.CloseClientConnections(); server.Close() }
	w.Cleanup(func() { server.Close() })
	return shut, open
}

// triesSpent is how many tries the tenant's payments have spent together, and most of one.
func triesSpent(w *world.World, owner string) (all, most int) {
	w.Helper()
	for cursor, first := "", true; first || cursor != ""; first = false {
		page, next, err := w.Store.List(w.Context(), payments.ListRequest{TenantID: owner, Limit: payments.LimitMax, Cursor: cursor})
		if err != nil {
			w.Fatal(err)
		}
		for _, p := range page {
			all, most = all+p.Tries, max(most, p.Tries)
		}
		cursor = next
	}
	return all, most
}

// probesAndFlight is how many calls an open breaker may let through in that time: a probe each 300 to 400 ms, and what was on its way when it opened.
func probesAndFlight(open time.Duration) int64 { return 100 + int64(open/(250*time.Millisecond)) }

// TestBreakerKeepsTries: Stripe refuses connections for several times as long as the tries of a payment last. Hundreds of payments come meanwhile: hardly
// anything is tried, the backlog stays in the stream, nobody spends a second try, and all are charged when Stripe is back.
func TestBreakerKeepsTries(t *testing.T) {
	t.Parallel()
	w := world.NewOf(t, world.BreakerTimes)
	shut, open := closable(w)
	gateway := &counted{}
	w.Start(world.WorkerOptions{Name: "worker", TriesMax: 3, Gateway: func(g payments.Gateway) payments.Gateway { gateway.Gateway = g; return gateway }})
	w.PublishMany("before", 20)
	w.Rest()
	before := gateway.calls.Load()

	shut()
	began := time.Now()
	const intents = 400
	w.PublishMany("order", intents)
	world.Pass(t.Context(), t, 5*time.Second)
	w.Await("probes", func() (bool, string) { n := gateway.calls.Load() - before; return n >= 5, fmt.Sprint(n, " calls") })
	calls, away, backlog := gateway.calls.Load()-before, time.Since(began), w.Backlog()
	all, _ := triesSpent(w, world.Tenant)
	t.Logf("%d calls in %v without Stripe, %d of %d messages are still in the stream, %d tries spent", calls, away, backlog, intents, all)
	if calls > probesAndFlight(away) {
		t.Errorf("%d calls in %v without Stripe: want a probe now and then, and what was on its way", calls, away)
	}
	if backlog < intents/3 {
		t.Errorf("%d of %d messages are still in the stream: it is to keep the backlog", backlog, intents)
	}

	open()
	a := w.MustBeGood(0)
	if len(a.Charges) != intents+20 {
		t.Errorf("%d charges, want %d", len(a.Charges), intents+20)
	}
	if all, most := triesSpent(w, world.Tenant); all > 20 || most > 1 {
		t.Errorf("%d tries were spent, and %d by one payment", all, most)
	}
}

// TestBreakerOfOnePayment: a lone payment outlasts an outage, too: the probes are its, and cost it nothing.
func TestBreakerOfOnePayment(t *testing.T) {
	t.Parallel()
	w := world.NewOf(t, world.BreakerTimes)
	shut, open := closable(w)
	gateway := &counted{}
	w.Start(world.WorkerOptions{Name: "worker", TriesMax: 3, Gateway: func(g payments.Gateway) payments.Gateway { gateway.Gateway = g; return gateway }})
	shut()
	w.Publish(w.Order("lone"))
	w.Await("many probes", func() (bool, string) { n := gateway.calls.Load(); return n >= 8, fmt.Sprint(n, " calls") })
	open()
	if a := w.MustBeGood(0); len(a.Charges) != 1 {
		t.Errorf("%d charges", len(a.Charges))
	}
	if _, most := triesSpent(w, world.Tenant); most > 2 {
		t.Errorf("it has spent %d tries", most)
	}
}

// TestBreakerOfARefusedKey: Stripe refuses the installation's key for a while. That account stops, with all tenants who use it, but for probes; a tenant
// with an account of its own does not notice; and when the key is good again everything goes on.
func TestBreakerOfARefusedKey(t *testing.T) {
	t.Parallel()
	b := newBranches(t)
	b.Times.Backoff = world.BreakerTimes.Backoff
	b.start(world.WorkerOptions{Name: "worker", TriesMax: 3})
	for _, owner := range []string{world.Tenant, world.Keyed} {
		known := b.orderOf(owner, "known")
		b.Publish(known)
		b.awaitStatus(known, payments.StatusSucceeded, "")
	}
	b.useKeys(world.StripeKey)
	before, began := b.refusals(), time.Now()
	const each = 150
	var own []world.Order
	for i := range each { // the tenant whose account works comes behind the other in the stream
		b.Publish(b.orderOf(world.Tenant, fmt.Sprint("stopped-", i)))
	}
	for i := range each {
		own = append(own, b.orderOf(world.Keyed, fmt.Sprint("works-", i)))
		b.Publish(own[i])
	}
	for _, o := range own {
		b.awaitStatus(o, payments.StatusSucceeded, "")
	}
	world.Pass(t.Context(), t, 2*time.Second)
	b.Await("probes", func() (bool, string) {
		n := b.refusals() - before
		return n >= 2, fmt.Sprint(n, " requests were refused")
	})
	n, took := b.refusals()-before, time.Since(began)
	t.Logf("%d requests were refused in %v", n, took)
	if int64(n) > probesAndFlight(took) {
		t.Errorf("%d requests were refused in %v: want probes, and what was on its way", n, took)
	}
	b.awaitLog("Stripe refuses the key of an account")
	if counts, err := b.Store.CountByStatus(t.Context(), world.Tenant); err != nil || counts[payments.StatusSucceeded] != 1 {
		t.Errorf("of the stopped tenant: %v, %v", counts, err)
	}
	b.useKeys()
	b.mustBeApart()
	if counts, err := b.Store.CountByStatus(t.Context(), world.Tenant); err != nil || counts[payments.StatusSucceeded] != each+1 {
		t.Errorf("at the end: %v, %v", counts, err)
	}
	if all, _ := triesSpent(b.World, world.Tenant); all != 0 {
		t.Errorf("%d tries were spent on a key", all)
	}
}

// refusals is how many requests Stripe has refused for their key.
func (b *branches) refusals() (n int) {
	for _, r := range b.Sim.Ledger().Requests {
		if r.Status == http.StatusUnauthorized {
			n++
		}
	}
	return n
}

// TestBreakerLeavesOnePaymentsLuckAlone: one payment whose requests get a 502 again and again stops nobody: its account's others go on at once.
func TestBreakerLeavesOnePaymentsLuckAlone(t *testing.T) {
	t.Parallel()
	w := world.NewOf(t, world.DrillTimes) // a call that took too long would count, and rightly
	w.Start(world.WorkerOptions{Name: "worker"})
	unlucky := w.Order("unlucky")
	w.Fault(unlucky, stripesim.FaultHTML502, 12)
	w.Publish(unlucky)
	w.PublishMany("order", 100)
	w.MustBeGood(0)
	if strings.Contains(w.Logs.Text(), "nothing is sent to it") {
		t.Error("the breaker has opened")
	}
}
