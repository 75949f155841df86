package operators

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/consumer/mark"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments"
)

// server makes and drops databases of the test's PostgreSQL from outside.
type server struct {
	w    *world.World
	conn *pgx.Conn
	name string // of the world's database
}

func serverOf(w *world.World) *server {
	w.Helper()
	u, err := url.Parse(w.DSN)
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
	ctx, cancel := context.WithTimeout(context.Background(), world.RestLimit)
	defer cancel()
	if _, err := s.conn.Exec(ctx, sql); err != nil {
		s.w.Fatalf("%s: %v", sql, err)
	}
}

// shut ends everybody's connections to the database and lets nobody in, so that it can be copied.
func (s *server) shut(name string) {
	s.exec(fmt.Sprintf("ALTER DATABASE %q ALLOW_CONNECTIONS false", name))
	s.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + name + "'")
	s.w.Await("the end of all connections", func() (bool, string) {
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

// postsOf is how many requests that could charge have reached the simulator.
func postsOf(w *world.World) int {
	n := 0
	for _, r := range w.Sim.Ledger().Requests {
		if r.Method == "POST" {
			n++
		}
	}
	return n
}

// unsettled is how many payments of the orders have not succeeded.
func unsettled(w *world.World, orders []world.Order) (n int) {
	for _, o := range orders {
		if w.Status(o.ID()) != payments.StatusSucceeded {
			n++
		}
	}
	return n
}

// compared waits until the worker has compared its database so often from now on, whole rounds of its keeper.
func compared(v *world.Worker, times int64) {
	v.World.Helper()
	before := v.Looks.Load()
	v.World.Await("looks at the mark", func() (bool, string) { n := v.Looks.Load() - before; return n >= times, fmt.Sprint(n, " looks") })
}

// marked waits until the newest work has been marked.
func marked(v *world.Worker) {
	w := v.World
	w.Helper()
	copied := mark.NewCopy(w.JS, w.Subjects.BucketMark())
	first, err := w.Store.Mark(context.Background())
	if err != nil {
		w.Fatal(err)
	}
	v.Worked() // what was done may have been marked already
	w.Await("a mark", func() (bool, string) {
		m, err := copied.Read(context.Background())
		return err == nil && m != nil && m.Counter > first.Counter, fmt.Sprintf("%+v, %v", m, err)
	})
}

// rewindSince asks for a rewind, and waits until it is completed.
func rewindSince(w *world.World, since time.Time) payments.Rewind {
	w.Helper()
	r, _, err := w.Store.BeginRewind(context.Background(), since, payments.Operation{Actor: "test", Reason: "restored"})
	if err != nil {
		w.Fatal(err)
	}
	return rewound(w, r.ID)
}

func rewound(w *world.World, id int64) (r payments.Rewind) {
	w.Helper()
	w.Await("the end of the rewind", func() (bool, string) {
		var err error
		r, err = w.Store.Rewind(context.Background(), id)
		if r.State == payments.RewindFailed {
			w.Fatalf("the rewind failed: %s", r.Detail)
		}
		return err == nil && r.State == payments.RewindCompleted, fmt.Sprintf("%+v %v", r, err)
	})
	return r
}

// history is what came after a backup: charges by NATS, by HTTP and by a batch over HTTP.
type history struct {
	*world.World
	server *server
	door   *world.Caller
	addr   string
	backup string
	since  time.Time
	orders []world.Order
	batch  world.Parcel
	later  []world.Order // published while nothing may be sent
	posts  int
}

// lose makes a backup, lets 3n+1 charges be made (by NATS, by HTTP and by a batch), and puts the backup in the database's place.
func lose(w *world.World, v *world.Worker, n int) *history {
	w.Helper()
	h := &history{World: w, server: serverOf(w), door: w.NewCaller()}
	h.addr = w.SpawnDoor("ingress", "relay").Address()
	old := w.Order("before-the-backup")
	w.Publish(old)
	w.Rest()
	marked(v)
	h.since = w.Clock.Now()
	h.backup = h.server.backUp()
	for i := range n {
		o := w.Order(fmt.Sprintf("nats-%d", i))
		if i%2 == 1 {
			o.Lane = payments.LaneBulk
		}
		w.Publish(o)
		h.orders = append(h.orders, o)
		p := w.Single(fmt.Sprintf("http-%d", i))
		h.door.Insist(p, "", func() string { return h.addr })
		h.orders = append(h.orders, p.Orders...)
	}
	h.batch = w.BatchOf("lot", n+1)
	h.door.Insist(h.batch, "", func() string { return h.addr })
	h.orders = append(h.orders, h.batch.Orders...)
	w.Rest()
	if n := unsettled(w, h.orders); n > 0 {
		w.Fatalf("%d payments are not settled", n)
	}
	marked(v)
	h.posts = postsOf(w)
	h.server.restore(h.backup)
	return h
}

// adopted wants every payment to be what it was, without another request that could have charged but for those of what came during the hold.
func (h *history) adopted(r payments.Rewind) {
	h.Helper()
	h.Rest()
	if n := unsettled(h.World, append(slices.Clone(h.orders), h.later...)); n > 0 {
		h.Errorf("%d of %d payments are not adopted", n, len(h.orders)+len(h.later))
	}
	if n := h.posts0(); n != len(h.later) {
		h.Errorf("%d requests were sent that could have charged, want %d", n, len(h.later))
	}
	if charges := len(h.Sim.Ledger().Charges); charges != len(h.orders)+len(h.later)+1 {
		h.Errorf("%d charges, want %d", charges, len(h.orders)+len(h.later)+1)
	}
	if r.Progress.Restored < len(h.orders) || r.Progress.Restored > len(h.orders)+len(h.later) {
		h.Errorf("%d payments were stored again, want %d: %+v", r.Progress.Restored, len(h.orders), r.Progress)
	}
	for _, v := range h.Account().Violations {
		h.Errorf("ticket violation: %+v", v)
	}
	h.posts = postsOf(h.World)
	h.later = nil
}

// posts0 is how many requests that could charge have come since the restore.
func (h *history) posts0() int { return postsOf(h.World) - h.posts }

// again posts the batch once more: it adopts its children.
func (h *history) again() {
	h.Helper()
	h.door.Insist(h.batch, "", func() string { return h.addr })
	h.Rest()
	for _, o := range h.batch.Orders {
		p, err := h.Store.Find(context.Background(), world.Tenant, o.ID())
		if err != nil || p.Status != payments.StatusSucceeded || p.BatchID == "" {
			h.Errorf("%s after its batch came again: %s, batch %q, %v", o.Key, p.Status, p.BatchID, err)
		}
	}
	b, err := h.Store.Batch(context.Background(), world.Tenant, payments.NewID(world.Tenant, h.batch.Key))
	if err != nil || !b.Complete() {
		h.Errorf("the batch is not complete: %v", err)
	}
	if n := h.posts0(); n != 0 {
		h.Errorf("after the batch came again %d requests were sent", n)
	}
}

// staysHeld wants the worker to be held, and nothing to be sent while it comes by often and there is work. Where Stripe may have forgotten keys by
// now there is none: a payment that Stripe has nothing of would wait for a day.
func (h *history) staysHeld(v *world.Worker) {
	h.Helper()
	h.Await("the hold", func() (bool, string) { return v.Mark.Held() != "", "not held" })
	before := postsOf(h.World)
	if h.Clock.Now().Sub(h.since) < 20*time.Hour {
		o := h.Order("during-the-hold")
		h.Publish(o)
		h.later = append(h.later, o)
	}
	compared(v, 15)
	if n := h.posts0(); n != 0 || postsOf(h.World) != before {
		h.Fatalf("held, and %d requests were sent", n)
	}
}

func TestRestoredDatabaseIsRewound(t *testing.T) {
	t.Parallel()
	for name, jump := range map[string]time.Duration{"a day later": 25 * time.Hour, "at once": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			world.TakeTurn(t)
			w := world.New(t)
			v := w.Start(world.WorkerOptions{Name: "worker", Marked: true})
			h := lose(w, v, 33)
			w.Clock.Advance(jump)
			h.staysHeld(v)
			r := rewindSince(w, h.since)
			h.adopted(r)
			h.again()
		})
	}
}
