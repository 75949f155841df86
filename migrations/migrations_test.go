package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/migrations"
	"github.com/oncepay/oncepay/payments"
)

// migrateEnv makes the test binary a process that only migrates the database it names.
const migrateEnv = "ONCEPAY_TEST_MIGRATE"

func TestMain(m *testing.M) {
	if dsn := os.Getenv(migrateEnv); dsn != "" {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := migrations.Up(ctx, dsn); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	devstacktest.Run(m)
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// poll asks until done says so.
func poll(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for !done() {
		select {
		case <-deadline:
			t.Fatalf("not within 2 minutes: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestEightProcessesOneKilled starts eight processes on an empty database, kills with SIGKILL the one that migrates while a step is half done,
// and wants the others to complete it.
func TestEightProcessesOneKilled(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dsn := devstacktest.Database(t)
	control := connect(t, dsn)

	// An uncommitted table of the same name holds the first step open in its middle: payments and the rest are done, payment_events waits.
	holder := connect(t, dsn)
	tx, err := holder.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "CREATE TABLE payment_events ()"); err != nil {
		t.Fatal(err)
	}

	type process struct {
		cmd  *exec.Cmd
		out  strings.Builder
		name string
		err  error
	}
	processes := make([]*process, 8)
	var wg sync.WaitGroup
	for i := range processes {
		p := &process{name: fmt.Sprintf("migrator-%d", i)}
		p.cmd = exec.Command(os.Args[0])
		p.cmd.Env = append(os.Environ(), migrateEnv+"="+dsn+"&application_name="+p.name)
		p.cmd.Stderr = &p.out
		processes[i] = p
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { p.err = p.cmd.Wait() })
	}
	t.Cleanup(func() {
		for _, p := range processes {
			_ = p.cmd.Process.Kill()
		}
		wg.Wait()
	})

	var victim string
	poll(t, "a process is held in the middle of a step", func() bool {
		err := control.QueryRow(ctx, `SELECT application_name FROM pg_stat_activity
			WHERE datname = current_database() AND application_name LIKE 'migrator-%' AND wait_event_type = 'Lock' AND query LIKE 'CREATE TABLE%'`).Scan(&victim)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			t.Fatal(err)
		}
		return victim != ""
	})
	poll(t, "the other seven are connected", func() bool {
		var n int
		err := control.QueryRow(ctx, `SELECT count(DISTINCT application_name) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name LIKE 'migrator-%'`).Scan(&n)
		return err == nil && n == len(processes)
	})
	for _, p := range processes {
		if p.name == victim {
			if err := p.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Its session notices by itself, although it waits for a lock and has nothing to write to its client.
	poll(t, "the dead process's session is gone", func() bool {
		var n int
		err := control.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1", victim).Scan(&n)
		return err == nil && n == 0
	})
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	for _, p := range processes {
		if (p.err != nil) != (p.name == victim) {
			t.Errorf("%s: %v (killed: %v)\n%s", p.name, p.err, p.name == victim, p.out.String())
		}
	}
	steps, err := migrations.Status(ctx, dsn)
	if err != nil || len(steps) == 0 {
		t.Fatalf("Status: %d steps, %v", len(steps), err)
	}
	for _, s := range steps {
		if !s.Applied || s.AppliedAt.IsZero() {
			t.Errorf("%s is not applied", s.Name)
		}
	}
	var twice int
	if err := control.QueryRow(ctx, "SELECT count(*) - count(DISTINCT version_id) FROM goose_db_version").Scan(&twice); err != nil || twice != 0 {
		t.Errorf("%d steps were applied twice, %v", twice, err)
	}
}

// TestStatusAndVersion reads without changing anything, and comes to the target.
func TestStatusAndVersion(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dsn := devstacktest.Database(t)
	if v, err := migrations.Version(ctx, dsn); v != 0 || err != nil {
		t.Fatalf("Version of an empty database: %d, %v", v, err)
	}
	steps, err := migrations.Status(ctx, dsn)
	if err != nil || len(steps) != int(migrations.Target()) || steps[0].Applied {
		t.Fatalf("Status of an empty database: %+v, %v", steps, err)
	}
	var tables int
	if err := connect(t, dsn).QueryRow(ctx, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").Scan(&tables); err != nil || tables != 0 {
		t.Fatalf("reading made %d tables, %v", tables, err)
	}
	if err := migrations.Up(ctx, dsn); err != nil {
		t.Fatal(err)
	}
	if v, err := migrations.Version(ctx, dsn); v != migrations.Target() || err != nil {
		t.Fatalf("Version after Up: %d, %v; the target is %d", v, err, migrations.Target())
	}
}

// TestFastPath: a database that is up to date asks for no lock, so that a restart does not wait for whoever has it.
func TestFastPath(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dsn := devstacktest.Database(t, migrations.Up)
	if _, err := connect(t, dsn).Exec(ctx, "SELECT pg_advisory_lock($1)", int64(0x6f6e636570617900)); err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := migrations.Up(soon, dsn); err != nil {
		t.Fatalf("Up waited for the lock: %v", err)
	}
}

// TestWrongDSN is one clear line.
func TestWrongDSN(t *testing.T) {
	t.Parallel()
	if err := migrations.Up(context.Background(), "mysql://x"); err == nil || !strings.Contains(err.Error(), "postgres://") {
		t.Errorf("Up: %v", err)
	}
}

// TestSchemaRules holds the tables against the rules that they are made by.
func TestSchemaRules(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	conn := connect(t, devstacktest.Database(t, migrations.Up))
	column := func(query string, args ...any) []string {
		t.Helper()
		rows, err := conn.Query(ctx, query, args...)
		if err != nil {
			t.Fatal(err)
		}
		list, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return list
	}

	for _, def := range column("SELECT indexdef FROM pg_indexes WHERE tablename = 'payments'") {
		for _, changing := range []string{"status", "updated_at", "stripe_", "reason", "in_doubt"} {
			if strings.Contains(def, changing) {
				t.Errorf("an index of payments has a column that updates change: %s", def)
			}
		}
		if strings.Contains(def, "UNIQUE") && !strings.Contains(def, "tenant_id,") && !strings.Contains(def, "tenant_id)") {
			t.Errorf("a unique index without the tenant, by which the table must be partitioned one day: %s", def)
		}
	}
	foreign := column(`SELECT conrelid::regclass::text FROM pg_constraint WHERE contype = 'f'
		AND conrelid IN ('payment_events'::regclass, 'outbox'::regclass, 'outbox_intents'::regclass, 'queue'::regclass, 'batches'::regclass, 'operations'::regclass)`)
	if len(foreign) > 0 {
		t.Errorf("foreign keys from %v", foreign)
	}
	for _, def := range column("SELECT indexdef FROM pg_indexes WHERE tablename IN ('outbox', 'outbox_intents')") {
		if strings.Contains(def, "hold_until") {
			t.Errorf("an index of an outbox has the column that handing out changes: %s", def)
		}
	}
	settings := column("SELECT array_to_string(reloptions, ' ') FROM pg_class WHERE relname IN ('outbox', 'outbox_intents') AND relkind = 'r'")
	if len(settings) != 2 || settings[0] != settings[1] || !strings.Contains(settings[0], "autovacuum_vacuum_threshold") {
		t.Errorf("the outboxes are vacuumed differently: %q", settings)
	}
	keys := column(`SELECT a.attrelid::regclass || '.' || a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
		JOIN pg_collation l ON l.oid = a.attcollation
		WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND l.collname <> 'C'
			AND (a.attname IN ('tenant_id', 'idempotency_key', 'parent') OR c.relname IN ('tenants', 'api_keys', 'dead_letters') AND a.attname = 'id')`)
	if len(keys) > 0 {
		t.Errorf("keys that do not compare bytewise: %v", keys)
	}
	unnamed := column(`SELECT conname FROM pg_constraint WHERE contype = 'c' AND connamespace = 'public'::regnamespace AND conname ~ '_check[0-9]*$'`)
	if len(unnamed) > 0 {
		t.Errorf("constraints without a name of ours: %v", unnamed)
	}
	check := column("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname IN ('payments_status', 'payments_final_iff_finalized_at') ORDER BY conname DESC")
	if len(check) != 2 {
		t.Fatalf("constraints of the status: %v", check)
	}
	for _, s := range payments.Statuses() {
		if word := "'" + string(s) + "'"; !strings.Contains(check[0], word) || strings.Contains(check[1], word) != s.Final() {
			t.Errorf("%s: the constraints do not say what status.go says: %v", s, check)
		}
	}
	if n := strings.Count(check[0], "'::text"); n != len(payments.Statuses()) {
		t.Errorf("payments_status names %d statuses, status.go %d", n, len(payments.Statuses()))
	}
}
