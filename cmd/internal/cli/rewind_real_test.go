package cli

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// within polls until done says so.
func (b *bench) within(what string, done func(context.Context) error) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := done(ctx)
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.t.Fatalf("%s: %v", what, err)
		}
	}
}

// exchange ends all connections to a database and puts a copy of another in its place, or makes that copy.
func (b *bench) exchange(from, to string) {
	b.t.Helper()
	u, err := url.Parse(b.set["ONCEPAY_DATABASE_URL"])
	if err != nil {
		b.t.Fatal(err)
	}
	own := strings.TrimPrefix(u.Path, "/")
	u.Path = "/postgres"
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, u.String())
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close(ctx)
	exec := func(_ context.Context, sql string) error {
		_, err := conn.Exec(ctx, sql)
		return err
	}
	must := func(format string, args ...any) {
		b.t.Helper()
		if err := exec(ctx, fmt.Sprintf(format, args...)); err != nil {
			b.t.Fatal(err)
		}
	}
	must("ALTER DATABASE %q ALLOW_CONNECTIONS false", own)
	must("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '%s'", own)
	if to == "" {
		to = own
		b.within("the database is dropped", func(ctx context.Context) error { return exec(ctx, fmt.Sprintf("DROP DATABASE %q", own)) })
	} else {
		from = own
		b.t.Cleanup(func() { _ = b.drop(u.String(), to) })
	}
	b.within("the database is copied", func(ctx context.Context) error {
		return exec(ctx, fmt.Sprintf("CREATE DATABASE %q TEMPLATE %q", to, from))
	})
	must("ALTER DATABASE %q ALLOW_CONNECTIONS true", own)
}

func (b *bench) drop(dsn, name string) error {
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	_, err = conn.Exec(context.Background(), fmt.Sprintf("DROP DATABASE %q WITH (FORCE)", name))
	return err
}

// marked waits until the copy of the database's mark has come further than that, and returns how far.
func (b *bench) marked(further int64) (counter int64) {
	b.t.Helper()
	settings, err := app.Load(func(name string) (string, bool) { v, ok := b.set[name]; return v, ok })
	if err != nil {
		b.t.Fatal(err)
	}
	copied, closing, err := app.OpenMark(b.t.Context(), settings, "test")
	if err != nil {
		b.t.Fatal(err)
	}
	defer closing()
	b.within("the mark", func(ctx context.Context) error {
		m, err := copied.Read(ctx)
		if err == nil && (m == nil || m.Counter <= further) {
			err = fmt.Errorf("it stands at %+v", m)
		}
		if err == nil {
			counter = m.Counter
		}
		return err
	})
	return counter
}

// TestRewindForReal: a database is restored from a backup that does not know two charges. The command asks, is refused where nobody can be asked, adopts
// both without a request that could charge, and finds nothing to do the second time.
func TestRewindForReal(t *testing.T) {
	t.Parallel()
	b := newBench(t, migrate)
	b.json("tenants", "create", "demo")
	sim := b.serve()
	pay := func(key string) {
		t.Helper()
		b.run(intentFlags(key, "--wait")...).says(t, exitOK, "", "")
	}
	pay("before")
	counter := b.marked(0)
	since := time.Now().Format(time.RFC3339)
	backup := "backup_" + devstacktest.Prefix(t)
	b.exchange("", backup)
	b.within("a connection after the backup", b.answers)
	pay("lost-1")
	b.marked(counter)
	pay("lost-2")
	posts := posted(sim)
	b.exchange(backup, "")
	b.within("a connection after the restore", b.answers)

	b.fails(b.run("payments", "show", "--tenant", "demo", "--key", "lost-1"), exitFailed, "no payment")
	if r := b.run("rewind", "--since", since); r.code != exitUsage || r.out != "" || !strings.Contains(r.err, "a rewind from ") || !strings.Contains(r.err, "nothing is sent to Stripe until it is completed") ||
		!strings.Contains(r.err, "--yes: is required where there is no terminal to ask on; nothing was begun") {
		t.Errorf("nobody was asked: %+v", r)
	}
	b.fails(b.run("rewind", "--since", time.Now().Add(time.Hour).Format(time.RFC3339), "--yes"), exitUsage, "--since: lies in the future")
	if got := list(t, b.json("audit", "--action", "rewind")); len(got) != 0 {
		t.Errorf("something was begun: %v", got)
	}

	r := b.run("rewind", "--since", since, "--yes", "--reason", "restored", "--actor", "ann")
	for _, step := range []string{"rewind 1: ", "rewind 1 is completed: payments are sent again\n"} { // which steps it is seen in, chance decides
		r.says(t, exitOK, "2      payments stored again\n", step)
	}
	if strings.Contains(r.err, "nothing was missing") {
		t.Errorf("%q", r.err)
	}
	for _, key := range []string{"before", "lost-1", "lost-2"} {
		b.within(key, func(context.Context) error {
			if d := b.json("payments", "show", "--tenant", "demo", "--key", key); d["status"] != "succeeded" {
				return fmt.Errorf("it is %v %v", d["status"], d["reason"])
			}
			return nil
		})
	}
	d := b.json("rewind", "--since", since, "--yes")
	if d["id"] != 2.0 || d["state"] != "completed" || d["objects"] != 3.0 || d["restored"] != 0.0 || d["doubted"] != 0.0 || d["corrected"] != 0.0 || d["disagrees"] != 0.0 {
		t.Errorf("the second time: %v", d)
	}
	b.run("rewind", "--since", since, "--yes").says(t, exitOK, "0      payments stored again\n", "nothing was missing: the database had all that Stripe and the streams have\n")
	if n := posted(sim); n != posts || len(sim.Ledger().Charges) != 3 || sim.Summary().DoubleCharges != 0 {
		t.Errorf("%d requests that could charge, want %d; %d charges", n, posts, len(sim.Ledger().Charges))
	}
	if got := list(t, b.json("audit", "--action", "rewind")); len(got) != 6 || got[5].(map[string]any)["actor"] != "ann" || got[5].(map[string]any)["reason"] != "restored" {
		t.Errorf("audit: %v", got)
	}
}

// answers reports whether the database lets somebody in.
func (b *bench) answers(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, b.set["ONCEPAY_DATABASE_URL"])
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = postgres.ReadMark(ctx, conn)
	return err
}

func posted(sim *stripesim.Server) (n int) {
	for _, r := range sim.Ledger().Requests {
		if r.Method == "POST" {
			n++
		}
	}
	return n
}
