package crashtest

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/migrations"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest/oracle"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/payments/stripesim"
	"github.com/oncepay/oncepay/schema"
	"github.com/oncepay/oncepay/schema/provision"
)

// tenant is the tenant of nearly all tests; rival is the other one.
const (
	tenant    = "acme"
	rival     = "globex"
	namespace = "crash"
	stripeKey = "sk_test_crash"
)

// times are the settings that say how fast a world lives.
type times struct {
	lease, call, ackWait time.Duration
	backoff              payments.Backoff
	hold                 time.Duration // of outbox items
}

// short times: a lost owner is replaced within a second or two.
var short = times{
	lease: slow * 900 * time.Millisecond, call: slow * 300 * time.Millisecond, ackWait: slow * time.Second,
	backoff: payments.Backoff{First: 20 * time.Millisecond, Max: 150 * time.Millisecond, SoonMax: 60 * time.Millisecond},
	hold:    500 * time.Millisecond,
}

// place says where a world stands and how fast it lives.
type place struct {
	dsn, nats string
	times     times
}

// world is one installation of its own, and what its producers have asked for.
type world struct {
	testing.TB
	times    times
	dsn      string
	natsURL  string
	subjects schema.Subjects
	clock    *clock
	sim      *stripesim.Server
	simURL   string
	store    *postgres.Store // the test's own; it never settles anything
	js       jetstream.JetStream
	logs     *logBook

	mu      sync.Mutex
	intents map[payments.ID]*oracle.Intent
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldOf(t, short)
}

// newWorldOf is a world on the shared servers.
func newWorldOf(t testing.TB, pace times) *world {
	t.Helper()
	return newWorldAt(t, place{dsn: devstacktest.Database(t, migrations.Up), nats: devstacktest.NATS(t).URL(), times: pace})
}

func newWorldAt(t testing.TB, at place) *world {
	t.Helper()
	w := &world{
		TB: t, times: at.times, dsn: at.dsn, natsURL: at.nats, subjects: schema.Subjects{Prefix: devstacktest.Prefix(t)}, clock: &clock{}, logs: &logBook{},
		intents: map[payments.ID]*oracle.Intent{},
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the workers' log:\n%s", w.logs.text())
		}
	})
	w.startSimulator()
	ctx := t.Context()
	var err error
	if w.store, err = postgres.Open(ctx, w.dsn, postgres.Options{PoolSize: 2, Clock: w.clock, Namespace: namespace, Logger: w.logs.logger("test")}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := w.store.Close(ctx); err != nil {
			t.Errorf("the test's store: %v", err)
		}
	})
	for _, name := range []string{tenant, rival} {
		if _, err := w.store.CreateTenant(ctx, postgres.Tenant{ID: name}); err != nil {
			t.Fatal(err)
		}
	}
	nc := w.connect(w.natsURL, "test")
	t.Cleanup(nc.Close)
	if w.js, err = jetstream.New(nc); err != nil {
		t.Fatal(err)
	}
	if err := provision.Ensure(ctx, w.js, w.subjects.Streams(w.streamSettings()), w.subjects.Consumers(w.streamSettings())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		for _, s := range w.subjects.Streams(w.streamSettings()) {
			_ = w.js.DeleteStream(ctx, s.Name) // tidiness towards the neighbours
		}
	})
	return w
}

func (w *world) streamSettings() schema.Settings {
	return schema.Settings{StreamMaxBytes: 64 << 20, Replicas: 1, AckWait: w.times.ackWait}
}

func (w *world) startSimulator() {
	w.Helper()
	sim, err := stripesim.New(stripesim.Options{Clock: w.clock.Now, Seed: 1})
	if err != nil {
		w.Fatal(err)
	}
	server := httptest.NewServer(sim)
	w.sim, w.simURL = sim, server.URL
	w.Cleanup(func() {
		_ = sim.Close()
		server.Close()
	})
}

// connect is a connection as production has it, but for the pace of its reconnects.
func (w *world) connect(url, name string) *nats.Conn {
	w.Helper()
	nc, err := nats.Connect(url, nats.Name(name), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.ReconnectBufSize(-1), nats.IgnoreDiscoveredServers(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		w.Fatal(err)
	}
	return nc
}

// order is one payment that a producer asks for.
type order struct {
	oracle.Intent
	method   string
	metadata map[string]string
	lane     payments.Lane
	present  bool // its customer is there: the payment is on session
}

// order draws up an order whose customer nobody else has. Its metadata carry its name, for rules of the simulator to match.
func (w *world) order(name string) order {
	customer := "cus_" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, name)
	return order{
		Intent: oracle.Intent{TenantID: tenant, Key: name, Money: oracle.Money{Amount: 4200, Currency: "usd", Customer: customer}},
		method: "pm_card_visa", metadata: map[string]string{"order": name}, lane: payments.LaneInteractive,
	}
}

func (o order) id() payments.ID { return payments.NewID(o.TenantID, o.Key) }

func (o order) body(t testing.TB) []byte {
	t.Helper()
	data, err := schema.EncodeIntent(schema.Intent{
		OffSession:     schema.Some(!o.present),
		IdempotencyKey: schema.Some(o.Key), Amount: schema.Some(o.Money.Amount), Currency: schema.Some(o.Money.Currency),
		Customer: schema.Some(o.Money.Customer), PaymentMethod: schema.Some(o.method), Metadata: o.metadata,
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// expect enters an order into the producers' account of the run.
func (w *world) expect(o order) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.intents[o.id()] == nil {
		w.intents[o.id()] = &o.Intent
	}
}

func (w *world) acknowledged(id payments.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.intents[id].Acknowledged = true
}

// publish sends orders on their lanes and waits for each PubAck.
func (w *world) publish(orders ...order) {
	w.Helper()
	for _, o := range orders {
		w.expect(o)
		if ack := w.send(w.subject(o), o.body(w), nil); !ack.Duplicate {
			w.acknowledged(o.id())
		}
	}
}

// subject is where an order is published.
func (w *world) subject(o order) string {
	w.Helper()
	if o.lane == payments.LaneInteractive {
		return w.intentSubject(o.TenantID)
	}
	subject, err := w.subjects.Bulk(o.TenantID)
	if err != nil {
		w.Fatal(err)
	}
	return subject
}

func (w *world) intentSubject(tenantID string) string {
	w.Helper()
	subject, err := w.subjects.Intent(tenantID)
	if err != nil {
		w.Fatal(err)
	}
	return subject
}

func (w *world) send(subject string, data []byte, headers nats.Header) *jetstream.PubAck {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	ack, err := w.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: data, Header: headers})
	if err != nil {
		w.Fatalf("publish on %s: %v", subject, err)
	}
	return ack
}

// fault lets the simulator treat submissions of one order so, the first times of them.
func (w *world) fault(o order, fault string, times int) {
	w.Helper()
	rule := stripesim.Rule{Match: stripesim.Match{Path: "/v1/payment_intents", Metadata: map[string]string{"order": o.Key}}, Fault: fault, Times: times}
	if err := w.sim.AddFault(rule); err != nil {
		w.Fatal(err)
	}
}

// restLimit bounds all waiting: what takes longer has come to a stand.
const restLimit = 100 * time.Second

const pollEvery = 25 * time.Millisecond

// await polls a real server until done reports true, and fails the test with what it last said.
func (w *world) await(what string, done func() (bool, string)) {
	w.Helper()
	deadline := time.After(max(restLimit, 6*w.times.ackWait))
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		ok, said := done()
		if ok {
			return
		}
		select {
		case <-deadline:
			w.Fatalf("%s did not come in time: %s", what, said)
		case <-tick.C:
		}
	}
}

// rest waits until nothing is left to do: no ticket, no item in an outbox, no batch to be told, no message that is not acked. All the while, whoever must be acted
// on has a ticket, and nobody else has.
func (w *world) rest() {
	w.Helper()
	w.await("rest", func() (bool, string) { return w.resting(context.Background()) })
}

func (w *world) resting(ctx context.Context) (bool, string) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if broken, err := w.store.TicketViolations(ctx); err == nil && len(broken) > 0 && !payments.SabotageNoTicket {
		w.Fatalf("on the way, ticket and status disagree: %+v", broken)
	}
	// In this order: what is acked is stored, what is stored and has no ticket has its outcome, what has its outcome has its event.
	if ok, said := w.drained(ctx); !ok {
		return false, said
	}
	tickets, err := w.store.TicketCount(ctx)
	if err != nil || tickets > 0 {
		counts, _ := w.store.CountByStatus(ctx, tenant)
		return false, fmt.Sprintf("%d tickets, %v, error %v", tickets, counts, err)
	}
	if open, err := w.store.OpenBatches(ctx, payments.BatchRef{}, 1); err != nil || len(open) > 0 {
		return false, fmt.Sprintf("batch %v is not told, error %v", open, err)
	}
	if depth, err := w.store.OutboxDepth(ctx); err != nil || depth > 0 {
		return false, fmt.Sprintf("%d items in the outbox, error %v", depth, err)
	}
	// What was accepted over HTTP, or as a batch, is published after it is stored.
	if n, err := w.store.Unpublished(ctx); err != nil || n > 0 {
		return false, fmt.Sprintf("%d accepted payments are not published, error %v", n, err)
	}
	return w.drained(ctx)
}

// drained reports whether every message of both lanes is acked.
func (w *world) drained(ctx context.Context) (bool, string) {
	for _, c := range w.subjects.Consumers(w.streamSettings()) {
		consumer, err := w.js.Consumer(ctx, c.Stream, c.Durable)
		if err != nil {
			return false, fmt.Sprintf("%s: %v", c.Durable, err)
		}
		if i := consumer.CachedInfo(); i.NumPending > 0 || i.NumAckPending > 0 {
			return false, fmt.Sprintf("%s: %d messages not delivered, %d not acked", c.Durable, i.NumPending, i.NumAckPending)
		}
	}
	return true, ""
}

// status is a payment's stored status, "" when there is no such payment.
func (w *world) status(id payments.ID) payments.Status {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	p, err := w.store.Find(ctx, tenant, id)
	if err != nil && payments.ErrorCode(err) != payments.CodeNotFound {
		w.Fatal(err)
	}
	return p.Status
}
