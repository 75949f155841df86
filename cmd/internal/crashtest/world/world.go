package world

import (
	"context"
	"fmt"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
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

// Tenant is the tenant of nearly all tests; Rival is the other one.
const (
	Tenant    = "acme"
	Rival     = "globex"
	Namespace = "crash"
	StripeKey = "sk_test_crash"
)

// place says where a world stands and how fast it lives.
type place struct {
	dsn, nats string
	times     Times
}

// World is one installation of its own, and what its producers have asked for.
type World struct {
	testing.TB
	Times    Times
	DSN      string
	NATSURL  string
	Subjects schema.Subjects
	Clock    *Clock
	Sim      *stripesim.Server
	SimURL   string
	Store    *postgres.Store // the test's own; it never settles anything
	JS       jetstream.JetStream
	Logs     *LogBook

	mu        sync.Mutex
	intents   map[payments.ID]*oracle.Intent
	followUps map[payments.ID]*oracle.FollowUp
}

// New is a world on the shared servers, of short times.
func New(t testing.TB) *World {
	t.Helper()
	return NewOf(t, Short)
}

// NewOf is a world on the shared servers.
func NewOf(t testing.TB, pace Times) *World {
	t.Helper()
	return newAt(t, place{dsn: devstacktest.Database(t, migrations.Up), nats: devstacktest.NATS(t).URL(), times: pace})
}

func newAt(t testing.TB, at place) *World {
	t.Helper()
	w := &World{
		TB: t, Times: at.times, DSN: at.dsn, NATSURL: at.nats, Subjects: schema.Subjects{Prefix: devstacktest.Prefix(t)}, Clock: &Clock{}, Logs: &LogBook{},
		intents: map[payments.ID]*oracle.Intent{}, followUps: map[payments.ID]*oracle.FollowUp{},
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the workers' log:\n%s", w.Logs.Text())
		}
	})
	w.startSimulator()
	ctx := t.Context()
	var err error
	if w.Store, err = postgres.Open(ctx, w.DSN, postgres.Options{PoolSize: 2, Clock: w.Clock, Namespace: Namespace, Logger: w.Logs.Logger("test")}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := w.Store.Close(ctx); err != nil {
			t.Errorf("the test's store: %v", err)
		}
	})
	for _, name := range []string{Tenant, Rival} {
		if _, err := w.Store.CreateTenant(ctx, postgres.Tenant{ID: name}); err != nil {
			t.Fatal(err)
		}
	}
	nc := w.Connect(w.NATSURL, "test")
	t.Cleanup(nc.Close)
	if w.JS, err = jetstream.New(nc); err != nil {
		t.Fatal(err)
	}
	if err := provision.Ensure(ctx, w.JS, w.Subjects.Streams(w.streamSettings()), w.Subjects.Consumers(w.streamSettings())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for _, s := range w.Subjects.Streams(w.streamSettings()) {
			_ = w.JS.DeleteStream(ctx, s.Name) // tidiness towards the neighbours
		}
	})
	return w
}

func (w *World) streamSettings() schema.Settings {
	return schema.Settings{StreamMaxBytes: 64 << 20, Replicas: 1, AckWait: w.Times.AckWait}
}

func (w *World) startSimulator() {
	w.Helper()
	sim, err := stripesim.New(stripesim.Options{Clock: w.Clock.Now, Seed: 1})
	if err != nil {
		w.Fatal(err)
	}
	server := httptest.NewServer(sim)
	w.Sim, w.SimURL = sim, server.URL
	w.Cleanup(func() {
		_ = sim.Close()
		server.Close()
	})
}

// Connect is a connection as production has it, but for the pace of its reconnects.
func (w *World) Connect(url, name string) *nats.Conn {
	w.Helper()
	nc, err := nats.Connect(url, nats.Name(name), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.ReconnectBufSize(-1), nats.IgnoreDiscoveredServers(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		w.Fatal(err)
	}
	return nc
}

// RestLimit bounds all waiting: what takes longer has come to a stand.
const RestLimit = slow * 100 * time.Second

const pollEvery = 25 * time.Millisecond

// Await polls a real server until done reports true, and fails the test with what it last said.
func (w *World) Await(what string, done func() (bool, string)) {
	w.Helper()
	deadline := time.After(max(RestLimit, 6*w.Times.AckWait))
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

// Rest waits until nothing is left to do: no ticket, no item in an outbox, no batch to be told, no message that is not acked. All the while, whoever must be acted
// on has a ticket, and nobody else has.
func (w *World) Rest() {
	w.Helper()
	w.Await("rest", func() (bool, string) { return w.resting(context.Background()) })
}

func (w *World) resting(ctx context.Context) (bool, string) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if broken, err := w.Store.TicketViolations(ctx); err == nil && len(broken) > 0 && !payments.SabotageNoTicket {
		w.Fatalf("on the way, ticket and status disagree: %+v", broken)
	}
	// In this order: what is acked is stored, what is stored and has no ticket has its outcome, what has its outcome has its event.
	if ok, said := w.Drained(ctx); !ok {
		return false, said
	}
	tickets, err := w.Store.TicketCount(ctx)
	if err != nil || tickets > 0 {
		counts, _ := w.Store.CountByStatus(ctx, Tenant)
		return false, fmt.Sprintf("%d tickets, %v, error %v", tickets, counts, err)
	}
	if open, err := w.Store.OpenBatches(ctx, payments.BatchRef{}, 1); err != nil || len(open) > 0 {
		return false, fmt.Sprintf("batch %v is not told, error %v", open, err)
	}
	if depth, err := w.Store.OutboxDepth(ctx); err != nil || depth > 0 {
		return false, fmt.Sprintf("%d items in the outbox, error %v", depth, err)
	}
	// What was accepted over HTTP, or as a batch, is published after it is stored.
	if n, err := w.Store.Unpublished(ctx); err != nil || n > 0 {
		return false, fmt.Sprintf("%d accepted payments are not published, error %v", n, err)
	}
	return w.Drained(ctx)
}

// Drained reports whether every message of both lanes is acked.
func (w *World) Drained(ctx context.Context) (bool, string) {
	for _, c := range w.Subjects.Consumers(w.streamSettings()) {
		consumer, err := w.JS.Consumer(ctx, c.Stream, c.Durable)
		if err != nil {
			return false, fmt.Sprintf("%s: %v", c.Durable, err)
		}
		if i := consumer.CachedInfo(); i.NumPending > 0 || i.NumAckPending > 0 {
			return false, fmt.Sprintf("%s: %d messages not delivered, %d not acked", c.Durable, i.NumPending, i.NumAckPending)
		}
	}
	return true, ""
}

// Status is a payment's stored status, "" when there is no such payment.
func (w *World) Status(id payments.ID) payments.Status {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	p, err := w.Store.Find(ctx, Tenant, id)
	if err != nil && payments.ErrorCode(err) != payments.CodeNotFound {
		w.Fatal(err)
	}
	return p.Status
}

// Backlog is how many messages of the interactive lane wait in the stream.
func (w *World) Backlog() int {
	w.Helper()
	for _, c := range w.Subjects.Consumers(w.streamSettings()) {
		if c.Stream == w.Subjects.StreamIntents() {
			consumer, err := w.JS.Consumer(w.Context(), c.Stream, c.Durable)
			if err != nil {
				w.Fatal(err)
			}
			return int(consumer.CachedInfo().NumPending)
		}
	}
	w.Fatal("no durable of the interactive lane")
	return 0
}

// SQL runs statements on the world's database.
func (w *World) SQL(do func(context.Context, *pgx.Conn) error) {
	w.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, w.DSN)
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := do(ctx, conn); err != nil {
		w.Fatal(err)
	}
}
