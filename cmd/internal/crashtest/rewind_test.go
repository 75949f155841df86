package crashtest

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/consumer"
	"github.com/oncepay/oncepay/consumer/mark"
	"github.com/oncepay/oncepay/consumer/rewind"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/schema/provision"
)

// server makes and drops databases of the test's PostgreSQL from outside.
type server struct {
	w    *world
	conn *pgx.Conn
	name string // of the world's database
}

func (w *world) server() *server {
	w.Helper()
	u, err := url.Parse(w.dsn)
	if err != nil {
		w.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	u.Path = "/postgres"
	conn, err := pgx.Connect(context.Background(), u.String())
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = conn.Close(context.Background()) })
	return &server{w, conn, name}
}

func (s *server) exec(sql string) {
	s.w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), restLimit)
	defer cancel()
	if _, err := s.conn.Exec(ctx, sql); err != nil {
		s.w.Fatalf("%s: %v", sql, err)
	}
}

// shut ends everybody's connections to the database and lets nobody in, so that it can be copied.
func (s *server) shut(name string) {
	s.exec(fmt.Sprintf("ALTER DATABASE %q ALLOW_CONNECTIONS false", name))
	s.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + name + "'")
	s.w.await("the end of all connections", func() (bool, string) {
		var n int
		err := s.conn.QueryRow(context.Background(), "SELECT count(*) FROM pg_stat_activity WHERE datname = $1", name).Scan(&n)
		return err == nil && n == 0, fmt.Sprint(n, " connections ", err)
	})
}

func (s *server) open(name string) {
	s.exec(fmt.Sprintf("ALTER DATABASE %q ALLOW_CONNECTIONS true", name))
}

// backUp copies the database as it is; those who are connected meanwhile connect again.
func (s *server) backUp() (backup string) {
	s.w.Helper()
	backup = "backup_" + devstacktest.Prefix(s.w)
	s.shut(s.name)
	s.exec(fmt.Sprintf("CREATE DATABASE %q TEMPLATE %q", backup, s.name))
	s.open(s.name)
	s.w.Cleanup(func() { s.exec(fmt.Sprintf("DROP DATABASE %q WITH (FORCE)", backup)) })
	return backup
}

// restore puts the backup in the database's place.
func (s *server) restore(backup string) {
	s.w.Helper()
	s.shut(s.name)
	s.exec(fmt.Sprintf("DROP DATABASE %q", s.name))
	s.exec(fmt.Sprintf("CREATE DATABASE %q TEMPLATE %q", s.name, backup))
}

// posts is how many requests that could charge have reached the simulator.
func (w *world) posts() int {
	n := 0
	for _, r := range w.sim.Ledger().Requests {
		if r.Method == "POST" {
			n++
		}
	}
	return n
}

// unsettled is how many payments of the orders have not succeeded.
func (w *world) unsettled(orders []order) (n int) {
	for _, o := range orders {
		if w.status(o.id()) != payments.StatusSucceeded {
			n++
		}
	}
	return n
}

// observer tells the mark of a worker's work.
func (v *worker) observer() consumer.Observer {
	return consumer.Observer{
		Message: func(payments.Lane, string) { v.worked() },
		Settled: func(payments.Lane, payments.Settlement, time.Duration) { v.worked() },
		Taken:   func(payments.Lane, int) { v.worked() },
	}
}

func (v *worker) worked() {
	if v.keeper != nil {
		v.keeper.Worked()
	}
}

// looking counts how often the keeper has read the database, whole.
type looking struct {
	*postgres.Store
	v *worker
}

// Mark reads the mark and counts.
func (l looking) Mark(ctx context.Context) (payments.MarkState, error) {
	state, err := l.Store.Mark(ctx)
	if err == nil {
		l.v.looks.Add(1)
	}
	return state, err
}

// keep keeps the worker's mark and runs rewinds until ctx ends. A runner that dies is followed by another one.
func (w *world) keep(ctx context.Context, running *sync.WaitGroup, v *worker, store *postgres.Store, js jetstream.JetStream, gateway rewind.Stripe, onStep func(payments.RewindStep) bool) {
	w.Helper()
	if err := provision.EnsureBucket(ctx, js, w.subjects.BucketMark(), 1); err != nil {
		w.Fatal(err)
	}
	log := w.logs.logger("mark")
	v.keeper = mark.NewKeeper(mark.Config{
		Store: looking{store, v}, Copy: mark.NewCopy(js, w.subjects.BucketMark()), Gate: v.mark, Floors: app.StreamFloors(js, w.subjects), Every: 100 * time.Millisecond, Log: log,
	})
	running.Go(func() { _ = v.keeper.Run(ctx) })
	running.Go(func() {
		for ctx.Err() == nil {
			living, die := context.WithCancel(ctx)
			runner, err := app.NewRewinds(store, gateway, js, w.subjects, rewind.Config{
				Clock: w.clock, Settle: w.times.lease + 300*time.Millisecond, TriesMax: 20, Every: 50 * time.Millisecond, Pause: 100 * time.Millisecond,
				Hold: time.Second, Log: log, OnStep: func(s payments.RewindStep) {
					if onStep != nil && onStep(s) {
						die()
					}
				},
			})
			if err != nil {
				w.Error(err)
			} else {
				_ = runner.Run(living)
			}
			die()
		}
	})
}

// compared waits until the worker has compared its database so often from now on, whole rounds of its keeper.
func (v *worker) compared(times int64) {
	v.world.Helper()
	before := v.looks.Load()
	v.world.await("looks at the mark", func() (bool, string) { n := v.looks.Load() - before; return n >= times, fmt.Sprint(n, " looks") })
}

// marked waits until the newest work has been marked.
func (v *worker) marked() {
	w := v.world
	w.Helper()
	copied := mark.NewCopy(w.js, w.subjects.BucketMark())
	first, err := w.store.Mark(context.Background())
	if err != nil {
		w.Fatal(err)
	}
	v.worked() // what was done may have been marked already
	w.await("a mark", func() (bool, string) {
		m, err := copied.Read(context.Background())
		return err == nil && m != nil && m.Counter > first.Counter, fmt.Sprintf("%+v, %v", m, err)
	})
}

// rewind asks for a rewind, and waits until it is completed.
func (w *world) rewind(since time.Time) payments.Rewind {
	w.Helper()
	r, _, err := w.store.BeginRewind(context.Background(), since, payments.Operation{Actor: "test", Reason: "restored"})
	if err != nil {
		w.Fatal(err)
	}
	return w.rewound(r.ID)
}

func (w *world) rewound(id int64) (r payments.Rewind) {
	w.Helper()
	w.await("the end of the rewind", func() (bool, string) {
		var err error
		r, err = w.store.Rewind(context.Background(), id)
		if r.State == payments.RewindFailed {
			w.Fatalf("the rewind failed: %s", r.Detail)
		}
		return err == nil && r.State == payments.RewindCompleted, fmt.Sprintf("%+v %v", r, err)
	})
	return r
}

// history is what came after a backup: charges by NATS, by HTTP and by a batch over HTTP.
type history struct {
	*world
	server *server
	door   *caller
	addr   string
	backup string
	since  time.Time
	orders []order
	batch  parcel
	later  []order // published while nothing may be sent
	posts  int
}

// lose makes a backup, lets 3n+1 charges be made (by NATS, by HTTP and by a batch), and puts the backup in the database's place.
func (w *world) lose(v *worker, n int) *history {
	w.Helper()
	h := &history{world: w, server: w.server(), door: w.newCaller()}
	h.addr = w.spawnDoor("ingress", "relay").address()
	old := w.order("before-the-backup")
	w.publish(old)
	w.rest()
	v.marked()
	h.since = w.clock.Now()
	h.backup = h.server.backUp()
	for i := range n {
		o := w.order(fmt.Sprintf("nats-%d", i))
		if i%2 == 1 {
			o.lane = payments.LaneBulk
		}
		w.publish(o)
		h.orders = append(h.orders, o)
		p := w.single(fmt.Sprintf("http-%d", i))
		h.door.insist(p, "", func() string { return h.addr })
		h.orders = append(h.orders, p.orders...)
	}
	h.batch = w.batchOf("lot", n+1)
	h.door.insist(h.batch, "", func() string { return h.addr })
	h.orders = append(h.orders, h.batch.orders...)
	w.rest()
	if n := w.unsettled(h.orders); n > 0 {
		w.Fatalf("%d payments are not settled", n)
	}
	v.marked()
	h.posts = w.posts()
	h.server.restore(h.backup)
	return h
}

// adopted wants every payment to be what it was, without another request that could have charged but for those of what came during the hold.
func (h *history) adopted(r payments.Rewind) {
	h.Helper()
	h.rest()
	if n := h.unsettled(append(slices.Clone(h.orders), h.later...)); n > 0 {
		h.Errorf("%d of %d payments are not adopted", n, len(h.orders)+len(h.later))
	}
	if n := h.posts0(); n != len(h.later) {
		h.Errorf("%d requests were sent that could have charged, want %d", n, len(h.later))
	}
	if charges := len(h.sim.Ledger().Charges); charges != len(h.orders)+len(h.later)+1 {
		h.Errorf("%d charges, want %d", charges, len(h.orders)+len(h.later)+1)
	}
	if r.Progress.Restored < len(h.orders) || r.Progress.Restored > len(h.orders)+len(h.later) {
		h.Errorf("%d payments were stored again, want %d: %+v", r.Progress.Restored, len(h.orders), r.Progress)
	}
	for _, v := range h.account().Violations {
		h.Errorf("ticket violation: %+v", v)
	}
	h.posts = h.world.posts()
	h.later = nil
}

// posts0 is how many requests that could charge have come since the restore.
func (h *history) posts0() int { return h.world.posts() - h.posts }

// again posts the batch once more: it adopts its children.
func (h *history) again() {
	h.Helper()
	h.door.insist(h.batch, "", func() string { return h.addr })
	h.rest()
	for _, o := range h.batch.orders {
		p, err := h.store.Find(context.Background(), tenant, o.id())
		if err != nil || p.Status != payments.StatusSucceeded || p.BatchID == "" {
			h.Errorf("%s after its batch came again: %s, batch %q, %v", o.Key, p.Status, p.BatchID, err)
		}
	}
	b, err := h.store.Batch(context.Background(), tenant, payments.NewID(tenant, h.batch.key))
	if err != nil || !b.Complete() {
		h.Errorf("the batch is not complete: %v", err)
	}
	if n := h.posts0(); n != 0 {
		h.Errorf("after the batch came again %d requests were sent", n)
	}
}

// staysHeld wants the worker to be held, and nothing to be sent while it comes by often and there is work. Where Stripe may have forgotten keys by
// now there is none: a payment that Stripe has nothing of would wait for a day.
func (h *history) staysHeld(v *worker) {
	h.Helper()
	h.await("the hold", func() (bool, string) { return v.mark.Held() != "", "not held" })
	before := h.world.posts()
	if h.clock.Now().Sub(h.since) < 20*time.Hour {
		o := h.order("during-the-hold")
		h.publish(o)
		h.later = append(h.later, o)
	}
	v.compared(15)
	if n := h.posts0(); n != 0 || h.world.posts() != before {
		h.Fatalf("held, and %d requests were sent", n)
	}
}

func TestRestoredDatabaseIsRewound(t *testing.T) {
	t.Parallel()
	for name, jump := range map[string]time.Duration{"a day later": 25 * time.Hour, "at once": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			takeTurn(t)
			w := newWorld(t)
			v := w.start(workerOptions{name: "worker", marked: true})
			h := w.lose(v, 33)
			w.clock.advance(jump)
			h.staysHeld(v)
			r := w.rewind(h.since)
			h.adopted(r)
			h.again()
		})
	}
}
