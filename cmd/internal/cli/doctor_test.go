package cli

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/doctor"
	"github.com/oncepay/oncepay/deploy/devstack"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/migrations"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// healthy is an installation of which nothing is wrong: a PostgreSQL that syncs, streams, a simulator.
func healthy(t *testing.T) *bench {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	pg, err := devstack.StartPostgres(ctx, devstack.PostgresOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := pg.CreateDatabase(ctx, "oncepay"); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Up(ctx, pg.DSN("oncepay")); err != nil {
		t.Fatal(err)
	}
	sim, err := stripesim.New(stripesim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stripe := httptest.NewServer(sim)
	t.Cleanup(func() {
		_ = sim.Close()
		stripe.CloseClientConnections()
		stripe.Close()
	})
	b := withSettings(t, map[string]string{
		"ONCEPAY_DATABASE_URL": pg.DSN("oncepay"), "ONCEPAY_NATS_URL": devstacktest.NATS(t).URL(), "ONCEPAY_NATS_MONITOR_URL": devstacktest.NATS(t).MonitorURL(),
		"ONCEPAY_SUBJECT_PREFIX": devstacktest.Prefix(t), "ONCEPAY_STREAM_MAX_BYTES": "16777216", "ONCEPAY_STRIPE_KEY": "sk_test_simulated", "ONCEPAY_STRIPE_URL": stripe.URL,
	})
	settings, err := app.Load(func(name string) (string, bool) { v, ok := b.set[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	nc, js := b.connect()
	defer nc.Close()
	if err := app.EnsureStreams(ctx, js, settings, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDoctor: what is well ends with 0, what is not with 1; either way there is one document, or a table of plain lines.
func TestDoctor(t *testing.T) {
	t.Parallel()
	b := healthy(t)
	d := b.json("doctor", "--timeout", "2m")
	checks, ok := d["checks"].([]any)
	if len(d) != 2 || d["ok"] != true || !ok || len(checks) < 25 {
		t.Fatalf("%v", d)
	}
	for _, c := range checks {
		one := c.(map[string]any)
		if len(one) != 4 || one["result"] != "ok" || one["remedy"] != "" || one["found"] == "" || one["name"] == "" {
			t.Errorf("%v", one)
		}
	}
	plain := regexp.MustCompile(`^(ok  [a-z_]+ +[ -~]+\n)+\n\d+ checks: \d+ ok, 0 warnings, 0 failed, 0 not checked\n$`)
	if r := b.run("doctor", "--timeout", "2m"); r.code != exitOK || r.err != "" || !plain.MatchString(r.out) {
		t.Errorf("%+v", r)
	}

	b.flags = append(b.flags, "--namespace=other", "--nats-monitor-url=") // the database is bound to none yet
	if r := b.run("doctor"); r.code != exitOK || !strings.Contains(r.out, "\nwarning  nats_sync ") || !strings.Contains(r.out, "\n                               -> set ONCEPAY_NATS_MONITOR_URL") {
		t.Errorf("with a warning: %+v", r)
	}
	b.flags = append(b.flags, "--lease=10s")
	r := b.run("doctor", "--json")
	if d := oneDocument(t, r.out); r.code != exitFailed || r.err != "" || d["ok"] != false {
		t.Errorf("failed: %+v", r)
	}
	if r := b.run("doctor"); r.code != exitFailed || r.err != "" || !strings.Contains(r.out, "failed   settings ") || !strings.Contains(r.out, ", 1 warning, 1 failed, 0 not checked\n") {
		t.Errorf("failed: %+v", r)
	}
}

// TestDoctorWithoutServices: with everything away the answer comes at once, in full, and without passwords.
func TestDoctorWithoutServices(t *testing.T) {
	t.Parallel()
	b := withSettings(t, map[string]string{
		"ONCEPAY_DATABASE_URL": "postgres://u:hunter2@127.0.0.1:1/d", "ONCEPAY_NATS_URL": "nats://u:hunter2@127.0.0.1:1", "ONCEPAY_NATS_MONITOR_URL": "http://u:hunter2@127.0.0.1:1",
		"ONCEPAY_STRIPE_KEY": "sk_test_hunter2", "ONCEPAY_STRIPE_URL": "http://127.0.0.1:1",
	})
	for _, args := range [][]string{{"doctor"}, {"doctor", "--json"}} {
		r := b.run(args...)
		if r.code != exitFailed || r.err != "" || strings.Contains(r.out, "hunter2") || !strings.Contains(r.out, "cannot be reached") || !strings.Contains(r.out, "because postgres failed") {
			t.Errorf("%q: %+v", args, r)
		}
	}
	for args, want := range map[string]string{
		"doctor now": "wrong number of arguments", "doctor --timeout 0s": "--timeout: must be from 1s to 10m0s", "doctor --timeout 1h": "--timeout: must be", "doctor --timeout soon": "--timeout: must be a duration",
		"doctor --lease x": "ONCEPAY_LEASE: must be a duration", "doctor --database-url=": "ONCEPAY_DATABASE_URL: is required",
	} {
		b.fails(b.run(append(strings.Fields(args), "--json")...), exitUsage, want)
	}
}

// TestReportOnATerminal: lines are broken between words under their beginning, results have colours, and what others said cannot do anything.
func TestReportOnATerminal(t *testing.T) {
	t.Parallel()
	report := doctor.Report{Checks: []doctor.Check{
		{Name: "a", Result: doctor.OK, Found: "fine – \x1b[31mreally"},
		{Name: "long_name", Result: doctor.Failed, Found: "one two three four five six seven", Remedy: "do this and then do that"},
		{Name: "b", Result: doctor.NotChecked, Found: "because of it", Remedy: "not said again"},
	}}
	for name, c := range map[string]struct {
		style style
		want  string
	}{
		"plain": {style{ascii: true}, "ok           a          fine \\u2013 \\u001b[31mreally\nfailed       long_name  one two three four five six seven\n" +
			"                        -> do this and then do that\nnot_checked  b          because of it\n"},
		"terminal": {style{width: 48}, "ok           a          fine – \\u001b[31mreally\nfailed       long_name  one two three four five\n                        six seven\n" +
			"                        -> do this and then do\n                           that\nnot_checked  b          because of it\n"},
		"narrow": {style{width: 30}, "ok           a          fine – \\u001b[31mreally\nfailed       long_name  one two three four five six seven\n" +
			"                        -> do this and then do that\nnot_checked  b          because of it\n"},
		"coloured": {style{colour: true}, "\x1b[32mok         \x1b[0m  a          fine – \\u001b[31mreally\n\x1b[31mfailed     \x1b[0m  long_name  one two three four five six seven\n" +
			"                        -> do this and then do that\n\x1b[2mnot_checked\x1b[0m  b          because of it\n"},
	} {
		var out bytes.Buffer
		if err := c.style.print(&out, report); err != nil {
			t.Fatal(err)
		}
		if want := c.want + "\n3 checks: 1 ok, 0 warnings, 1 failed, 1 not checked\n"; out.String() != want {
			t.Errorf("%s:\n%q, want\n%q", name, out.String(), want)
		}
	}
	if got := styleOf(&bytes.Buffer{}); got != (style{ascii: true}) {
		t.Errorf("no terminal: %+v", got)
	}
}
