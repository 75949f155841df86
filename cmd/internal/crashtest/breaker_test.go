package crashtest

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

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// breakerTimes let a payment spend three tries within a second, and have a probe every 400 ms.
var breakerTimes = times{
	lease: 3 * time.Second, call: time.Second, ackWait: 2 * time.Second, hold: time.Second,
	backoff: payments.Backoff{First: 50 * time.Millisecond, Max: 400 * time.Millisecond, SoonMax: 100 * time.Millisecond},
}

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
func (w *world) closable() (shut, open func()) {
	w.Helper()
	var server *httptest.Server
	addr := "127.0.0.1:0"
	open = func() {
		w.Helper()
		listener, err := net.Listen("tcp", addr)
		if err != nil {
			w.Fatal(err)
		}
		server = httptest.NewUnstartedServer(w.sim)
		server.Listener.Close()
		server.Listener, addr = listener, listener.Addr().String()
		server.Start()
	}
	open()
	w.simURL = server.URL
	shut = func() { server.CloseClientConnections(); server.Close() }
	w.Cleanup(func() { server.Close() })
	return shut, open
}

// backlog is how many messages of the interactive lane wait in the stream.
func (w *world) backlog() int {
	w.Helper()
	for _, c := range w.subjects.Consumers(w.streamSettings()) {
		if c.Stream == w.subjects.StreamIntents() {
			consumer, err := w.js.Consumer(w.Context(), c.Stream, c.Durable)
			if err != nil {
				w.Fatal(err)
			}
			return int(consumer.CachedInfo().NumPending)
		}
	}
	w.Fatal("no durable of the interactive lane")
	return 0
}

// triesSpent is how many tries the tenant's payments have spent together, and most of one.
func (w *world) triesSpent(owner string) (all, most int) {
	w.Helper()
	for cursor, first := "", true; first || cursor != ""; first = false {
		page, next, err := w.store.List(w.Context(), payments.ListRequest{TenantID: owner, Limit: payments.LimitMax, Cursor: cursor})
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

// TestBreakerKeepsTries: Stripe refuses connections for several times as long as the tries of a payment last. Hundreds of payments come meanwhile: hardly
// anything is tried, the backlog stays in the stream, nobody spends a second try, and all are charged when Stripe is back.
func TestBreakerKeepsTries(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, breakerTimes)
	shut, open := w.closable()
	gateway := &counted{}
	w.start(workerOptions{name: "worker", triesMax: 3, gateway: func(g payments.Gateway) payments.Gateway { gateway.Gateway = g; return gateway }})
	w.publishMany("before", 20)
	w.rest()
	before := gateway.calls.Load()

	shut()
	const intents = 400
	w.publishMany("order", intents)
	pass(t.Context(), t, 5*time.Second)
	calls, backlog := gateway.calls.Load()-before, w.backlog()
	all, _ := w.triesSpent(tenant)
	t.Logf("%d calls in 5 s without Stripe, %d of %d messages are still in the stream, %d tries spent", calls, backlog, intents, all)
	if calls < 5 || calls > 120 {
		t.Errorf("%d calls in 5 s without Stripe: want a probe now and then, and what was on its way", calls)
	}
	if backlog < intents/3 {
		t.Errorf("%d of %d messages are still in the stream: it is to keep the backlog", backlog, intents)
	}

	open()
	a := w.mustBeGood(0)
	if len(a.Charges) != intents+20 {
		t.Errorf("%d charges, want %d", len(a.Charges), intents+20)
	}
	if all, most := w.triesSpent(tenant); all > 20 || most > 1 {
		t.Errorf("%d tries were spent, and %d by one payment", all, most)
	}
}

// TestBreakerOfOnePayment: a lone payment outlasts an outage, too: the probes are its, and cost it nothing.
func TestBreakerOfOnePayment(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, breakerTimes)
	shut, open := w.closable()
	gateway := &counted{}
	w.start(workerOptions{name: "worker", triesMax: 3, gateway: func(g payments.Gateway) payments.Gateway { gateway.Gateway = g; return gateway }})
	shut()
	w.publish(w.order("lone"))
	w.await("many probes", func() (bool, string) { n := gateway.calls.Load(); return n >= 8, fmt.Sprint(n, " calls") })
	open()
	if a := w.mustBeGood(0); len(a.Charges) != 1 {
		t.Errorf("%d charges", len(a.Charges))
	}
	if _, most := w.triesSpent(tenant); most > 2 {
		t.Errorf("it has spent %d tries", most)
	}
}

// TestBreakerOfARefusedKey: Stripe refuses the installation's key for a while. That account stops, with all tenants who use it, but for probes; a tenant
// with an account of its own does not notice; and when the key is good again everything goes on.
func TestBreakerOfARefusedKey(t *testing.T) {
	t.Parallel()
	b := newBranches(t)
	b.times.backoff = breakerTimes.backoff
	b.start(workerOptions{name: "worker", triesMax: 3})
	for _, owner := range []string{tenant, keyed} {
		known := b.orderOf(owner, "known")
		b.publish(known)
		b.awaitStatus(known, payments.StatusSucceeded, "")
	}
	b.useKeys(stripeKey)
	before := b.refusals()
	const each = 150
	var own []order
	for i := range each { // the tenant whose account works comes behind the other in the stream
		b.publish(b.orderOf(tenant, fmt.Sprint("stopped-", i)))
	}
	for i := range each {
		own = append(own, b.orderOf(keyed, fmt.Sprint("works-", i)))
		b.publish(own[i])
	}
	for _, o := range own {
		b.awaitStatus(o, payments.StatusSucceeded, "")
	}
	pass(t.Context(), t, 2*time.Second)
	n := b.refusals() - before
	t.Logf("%d requests were refused", n)
	if n < 2 || n > 100 {
		t.Errorf("%d requests were refused: want probes, and what was on its way", n)
	}
	b.awaitLog("Stripe refuses the key of an account")
	if counts, err := b.store.CountByStatus(t.Context(), tenant); err != nil || counts[payments.StatusSucceeded] != 1 {
		t.Errorf("of the stopped tenant: %v, %v", counts, err)
	}
	b.useKeys()
	b.mustBeApart()
	if counts, err := b.store.CountByStatus(t.Context(), tenant); err != nil || counts[payments.StatusSucceeded] != each+1 {
		t.Errorf("at the end: %v, %v", counts, err)
	}
	if all, _ := b.triesSpent(tenant); all != 0 {
		t.Errorf("%d tries were spent on a key", all)
	}
}

// refusals is how many requests Stripe has refused for their key.
func (b *branches) refusals() (n int) {
	for _, r := range b.sim.Ledger().Requests {
		if r.Status == http.StatusUnauthorized {
			n++
		}
	}
	return n
}

// TestBreakerLeavesOnePaymentsLuckAlone: one payment whose requests get a 502 again and again stops nobody: its account's others go on at once.
func TestBreakerLeavesOnePaymentsLuckAlone(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, drillTimes) // a call that took too long would count, and rightly
	w.start(workerOptions{name: "worker"})
	unlucky := w.order("unlucky")
	w.fault(unlucky, stripesim.FaultHTML502, 12)
	w.publish(unlucky)
	w.publishMany("order", 100)
	w.mustBeGood(0)
	if strings.Contains(w.logs.text(), "nothing is sent to it") {
		t.Error("the breaker has opened")
	}
}
