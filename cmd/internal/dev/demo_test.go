package dev

import (
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
)

func taken(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

func numbers(t *testing.T, d map[string]any, names string) {
	t.Helper()
	for name := range strings.FieldsSeq(names) {
		if _, ok := d[name].(float64); !ok {
			t.Errorf("%s is %v", name, d[name])
		}
	}
}

const demoNumbers = "intents messages_published duplicates_published payments stripe_requests stripe_repeats stripe_charges double_charges unattributed lost " +
	"dead_letters faults_injected workers_killed duration_s payments_per_s e2e_p50_ms e2e_p99_ms"

// TestDemo: the demo proves what it says, in the words of its contract, and leaves nothing behind.
func TestDemo(t *testing.T) {
	t.Parallel()
	tmp := temporary(t)
	p := start(t, "", tmp, nil, "demo", "--intents", "200", "--seed", "7", "--json")
	if code := p.wait(); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, p.out.String(), p.err.String())
	}
	d := p.document()
	numbers(t, d, demoNumbers)
	for name, want := range map[string]float64{"intents": 200, "payments": 200, "double_charges": 0, "unattributed": 0, "lost": 0, "workers_killed": 2, "stripe_charges": 190} {
		if d[name] != want {
			t.Errorf("%s is %v, want %v", name, d[name], want)
		}
	}
	outcomes, ok := d["outcomes"].(map[string]any)
	if !ok || outcomes["succeeded"] != 190.0 || outcomes["failed"] != 10.0 {
		t.Errorf("outcomes: %v", d["outcomes"])
	}
	if d["duplicates_published"].(float64) < 200 || d["messages_published"].(float64) < 400 || d["dead_letters"].(float64) < 4 || d["faults_injected"].(float64) == 0 {
		t.Errorf("the demo is too easy: %v", d)
	}
	if !strings.Contains(p.err.String(), "killed a worker process with SIGKILL") || strings.ContainsAny(p.err.String(), "\r\x1b") {
		t.Errorf("what it says meanwhile: %q", p.err.String())
	}
	if names := left(t, tmp); names != "" {
		t.Errorf("left: %s", names)
	}
}

// TestDemoInWords: without --json people read it, within 80 columns.
func TestDemoInWords(t *testing.T) {
	t.Parallel()
	p := run(t, "demo", "--intents", "20", "--faults", "none")
	if p.code() != 0 || !strings.Contains(p.out.String(), "PROVED: ") || !strings.Contains(p.out.String(), "double charges       0\n") {
		t.Errorf("exit code %d: %s%s", p.code(), p.out.String(), p.err.String())
	}
	for line := range strings.Lines(p.out.String() + p.err.String()) {
		if len(line) > 81 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

// TestDemoInterrupted: Ctrl-C ends it at once, with one line and without leftovers.
func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	tmp := temporary(t)
	p := start(t, "", tmp, nil, "demo", "--intents", "100000")
	until(t, func() string {
		if strings.Contains(p.err.String(), "publishing") {
			return ""
		}
		return "it publishes"
	})
	all := family(t, p.command.Process.Pid)
	if err := syscall.Kill(-p.command.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(); code != 1 || !strings.HasSuffix(p.err.String(), "\noncepay-dev: interrupted\n") || p.out.String() != "" {
		t.Errorf("exit code %d: %q %q", code, p.out.String(), p.err.String())
	}
	until(t, func() string { return alive(all) })
	if names := left(t, tmp); names != "" {
		t.Errorf("left: %s", names)
	}
}

// TestBench: it measures on a database of its own, which is gone afterwards, and leaves the one it was given alone.
func TestBench(t *testing.T) {
	t.Parallel()
	dsn := devstacktest.Database(t)
	p := run(t, "bench", "--intents", "500", "--duplicates", "0.5", "--json", "--postgres", dsn)
	if p.code() != 0 {
		t.Fatalf("exit code %d: %s", p.code(), p.err.String())
	}
	d := p.document()
	names := "publish_per_s payments_per_s e2e_p50_ms e2e_p99_ms cpu_s_per_1k wal_bytes_per_payment peak_rss_mb stripe_requests"
	numbers(t, d, names)
	for name := range strings.FieldsSeq(names) {
		if v, _ := d[name].(float64); v <= 0 {
			t.Errorf("%s is %v", name, d[name])
		}
	}
	if d["stripe_requests"] != 500.0 || d["messages"] != 750.0 {
		t.Errorf("%v", d)
	}
	connection, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(t.Context())
	var left, tables int
	err = connection.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM pg_database WHERE datname LIKE 'oncepay_bench%'), (SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace)").Scan(&left, &tables)
	if err != nil || left != 0 || tables != 0 {
		t.Errorf("%d databases and %d tables left, %v", left, tables, err)
	}
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = "127.0.0.1:1"
	if p := run(t, "bench", "--intents", "1", "--postgres", u.String(), "--json"); p.code() != 1 || p.out.String() != "" || strings.Count(p.err.String(), "\n") != 1 || !strings.Contains(p.err.String(), "--postgres: ") {
		t.Errorf("a database that is away: %d %q %q", p.code(), p.out.String(), p.err.String())
	}
}
