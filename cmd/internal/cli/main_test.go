package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/migrations"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// programEnv makes this test binary the program oncepay.
const programEnv = "TEST_BINARY_IS_ONCEPAY"

func TestMain(m *testing.M) {
	if os.Getenv(programEnv) != "" {
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	devstacktest.Run(m)
}

// patience is how long anything may take on a busy machine.
const patience = 2 * time.Minute

// result is what a command left behind.
type result struct {
	code     int
	out, err string
}

// bench is a database, subjects and settings of one test.
type bench struct {
	t     *testing.T
	flags []string
	set   map[string]string

	sequence int // of the next message that is made a dead letter
}

// newBench gives a test a database, brought to the schema with a migration, and subjects of its own.
func newBench(t *testing.T, migrate ...devstacktest.Migrate) *bench {
	t.Helper()
	return withSettings(t, map[string]string{
		"ONCEPAY_DATABASE_URL": devstacktest.Database(t, migrate...), "ONCEPAY_NATS_URL": devstacktest.NATS(t).URL(),
		"ONCEPAY_SUBJECT_PREFIX": devstacktest.Prefix(t), "ONCEPAY_STREAM_MAX_BYTES": "16777216",
	})
}

func withSettings(t *testing.T, set map[string]string) *bench {
	b := &bench{t: t, set: set}
	for name, value := range set {
		b.flags = append(b.flags, "--"+app.FlagOf(name)+"="+value)
	}
	return b
}

func (b *bench) run(args ...string) result { return b.with("", args...) }

// with runs the program with something on standard input.
func (b *bench) with(in string, args ...string) result {
	b.t.Helper()
	var out, err bytes.Buffer
	code := Main(append(slices.Clone(b.flags), args...), strings.NewReader(in), &out, &err)
	return result{code, out.String(), err.String()}
}

// json runs a command with --json and reads its one document.
func (b *bench) json(args ...string) map[string]any {
	b.t.Helper()
	r := b.run(append(args, "--json")...)
	if r.code != exitOK {
		b.t.Fatalf("%q: %+v", args, r)
	}
	return oneDocument(b.t, r.out)
}

// oneDocument reads exactly one JSON document.
func oneDocument(t *testing.T, text string) (d map[string]any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	if err := decoder.Decode(&d); err != nil {
		t.Fatalf("no document: %v in %q", err, text)
	}
	if _, err := decoder.Token(); err != io.EOF {
		t.Fatalf("something follows the document: %q", text)
	}
	return d
}

// list is a list's data; next_cursor must be there.
func list(t *testing.T, d map[string]any) []any {
	t.Helper()
	data, ok := d["data"].([]any)
	if _, cursor := d["next_cursor"]; !ok || !cursor || len(d) != 2 {
		t.Fatalf("not a list: %v", d)
	}
	return data
}

// fails checks that a command failed as it should: exit code, nothing on standard output, and one line that contains all of want.
func (b *bench) fails(r result, code int, want ...string) {
	b.t.Helper()
	if r.code != code || r.out != "" || strings.Count(r.err, "\n") != 1 || !strings.HasPrefix(r.err, "oncepay: ") {
		b.t.Errorf("code %d, want %d; out %q, err %q", r.code, code, r.out, r.err)
	}
	for _, w := range want {
		if !strings.Contains(r.err, w) {
			b.t.Errorf("%q does not say %q", r.err, w)
		}
	}
}

// serve runs a worker against a simulator until the test ends.
func (b *bench) serve() *stripesim.Server {
	b.t.Helper()
	sim, err := stripesim.New(stripesim.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	stripe := httptest.NewServer(sim)
	set := map[string]string{
		"ONCEPAY_STRIPE_KEY": "sk_test_simulated", "ONCEPAY_STRIPE_URL": stripe.URL, "ONCEPAY_HTTP_ADDR": "off", "ONCEPAY_CONCURRENCY": "16",
		"ONCEPAY_STRIPE_TIMEOUT": "6s", "ONCEPAY_LEASE": "8s", // a rewind waits for longer than a lease
	}
	source := func(values map[string]string) app.Source {
		return func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	}
	settings, err := app.Load(source(set), source(b.set))
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ready, served := make(chan struct{}), make(chan error, 1)
	go func() {
		served <- app.Serve(ctx, settings, slog.New(slog.DiscardHandler), app.ServeOptions{Ready: func(string, string) { close(ready) }})
	}()
	b.t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			b.t.Errorf("Serve: %v", err)
		}
		_ = sim.Close()
		stripe.Close()
	})
	select {
	case <-ready:
	case err := <-served:
		served <- err
		b.t.Fatalf("Serve: %v", err)
	case <-time.After(patience):
		b.t.Fatal("the worker does not get ready")
	}
	return sim
}

var migrate devstacktest.Migrate = migrations.Up
