package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// serveAPI runs the whole service with its HTTP door against a simulator, and returns the door's address and a key of the tenant demo.
func (b *bench) serveAPI() (sim *stripesim.Server, address, key string) {
	b.t.Helper()
	sim, err := stripesim.New(stripesim.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	stripe := httptest.NewServer(sim)
	b.json("tenants", "create", "demo")
	key = b.json("keys", "create", "--tenant", "demo", "--scopes", "batches:write,payments:read")["key"].(string)
	set := map[string]string{
		"ONCEPAY_STRIPE_KEY": "sk_test_simulated", "ONCEPAY_STRIPE_URL": stripe.URL, "ONCEPAY_HTTP_ADDR": "127.0.0.1:0", "ONCEPAY_ADMIN_ADDR": "127.0.0.1:0",
		"ONCEPAY_CONCURRENCY": "64", "ONCEPAY_STRIPE_TIMEOUT": "30s", "ONCEPAY_LEASE": "45s", "ONCEPAY_STRIPE_RATE": "0",
	}
	source := func(values map[string]string) app.Source {
		return func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	}
	settings, err := app.Load(source(set), source(b.set))
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ready, served := make(chan string, 1), make(chan error, 1)
	go func() {
		served <- app.Serve(ctx, settings, slog.New(slog.DiscardHandler), app.ServeOptions{Ready: func(http, _ string) { ready <- http }})
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
	case address = <-ready:
	case err := <-served:
		served <- err
		b.t.Fatalf("Serve: %v", err)
	case <-time.After(patience):
		b.t.Fatal("the service does not get ready")
	}
	return sim, "http://" + address, key
}

// writeFile makes a file of the test.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// rowsOf are n rows of CSV under a header, with one more column at the end.
func rowsOf(n int, column, value string) string {
	var b strings.Builder
	b.WriteString("amount_decimal,currency,payment_method,customer," + column + "\n")
	for i := range n {
		fmt.Fprintf(&b, "%d.50,usd,pm_card_visa,cus_%d,%s\n", i+1, i, value)
	}
	return b.String()
}

func TestBatchUsage(t *testing.T) {
	t.Parallel()
	good := writeFile(t, "good.csv", "amount,currency,payment_method\n100,usd,pm_card_visa\n")
	unnamed := writeFile(t, "good.txt", "amount,currency,payment_method\n100,usd,pm_card_visa\n")
	keyFile := writeFile(t, "key", "\n")
	const to = " --api-url http://127.0.0.1:1 --api-key opk_x"
	b := withSettings(t, nil)
	for _, c := range []struct{ args, want string }{
		{"batch", "batch: needs a command: run, show"},
		{"batch run", "usage: oncepay batch run FILE --key K"},
		{"batch run " + good + " x --key k", "wrong number of arguments"},
		{"batch run " + good, "--key: is required"},
		{"batch run --key a::b " + good, "--key: must not contain"},
		{"batch run --key " + strings.Repeat("k", 240) + " " + good, "--key: must have at most 231"},
		{"batch run --key k --concurrency 0 " + good, "--concurrency: must be from 1 to 64"},
		{"batch run --key k --concurrency 65 " + good, "--concurrency: must be from 1 to 64"},
		{"batch run --key k --retry-for -1s " + good, "--retry-for: must not be negative"},
		{"batch run --key k " + good + " --api-key opk_x --api-url=", "ONCEPAY_API_URL: is required"},
		{"batch run --key k " + good + " --api-url https://pay.example.com --api-key=", "ONCEPAY_API_KEY: is required"},
		{"batch run --key k " + good + " --api-url https://pay.example.com --api-key=file:" + keyFile, "ONCEPAY_API_KEY: the file is empty"},
		{"batch run --key k " + good + " --api-url https://pay.example.com --api-key=file:/nowhere/key", "ONCEPAY_API_KEY: the file cannot be read: no such file"},
		{"batch run --key k " + good + " --api-url https://pay.example.com --api-key=opk_\u00e4", "ONCEPAY_API_KEY: must be the one line"},
		{"batch run --key k " + good + " --api-url http://pay.example.com --api-key=opk_x", "ONCEPAY_API_URL: is http to another machine"},
		{"batch run --key k " + unnamed + to, "--format: the name does not end in .csv"},
		{"batch run --key k - " + to, "--format: is required with standard input"},
		{"batch run --key k " + good + " --format xml" + to, "--format: must be csv or jsonl"},
		{"batch run --key k /nowhere/f.csv" + to, "the file cannot be read: no such file"},
		{"batch run --key k " + t.TempDir() + " --format csv" + to, "is a directory"},
		{"batch show", "usage: oncepay batch show ID"},
		{"batch show k", "ONCEPAY_DATABASE_URL: is required"},
		{"batch show bat_00", "ONCEPAY_DATABASE_URL: is required"},
		{"batch show " + card, "give a batch's id"},
		{"batch list --help", `batch: unknown command "list"; there are run, show`},
		{"batch run --key k " + good + " --no-wait --results r" + to, "--results: goes without --no-wait and --dry-run"},
		{"batch run --key k " + good + " --dry-run --results r", "--results: goes without --no-wait and --dry-run"},
		{"batch run --key k " + good + " --results " + good + to, "--results: is the file that is paid"},
		{"batch run --key k " + good + " --results /nowhere/r.jsonl" + to, "--results: the file cannot be written: no such file"},
		{"batch run --key k " + good + " --results " + filepath.Dir(good) + to, "--results: must name a file"},
		{"batch show k --tenant A", "--tenant: must be 1 to 63"},
		{"batch show " + card + " --tenant a", "give a batch's id"},
	} {
		r := b.run(strings.Fields(c.args)...)
		b.fails(r, exitUsage, c.want)
		if strings.Contains(r.err, "opk_") || strings.Contains(r.err, card) {
			t.Errorf("%s: %q", c.args, r.err)
		}
	}
}

// TestBatchDryRun: a file is checked without any setting, and a bad one is told of in lines that name places and no values.
func TestBatchDryRun(t *testing.T) {
	t.Parallel()
	b := withSettings(t, nil)
	good := writeFile(t, "good.csv", rowsOf(250, "description", "d"))
	d := b.json("batch", "run", good, "--key", "k", "--dry-run")
	if d["parent"] != "k" || d["batches"] != 3.0 || d["count"] != 250.0 || d["dry_run"] != true || d["amount"].(map[string]any)["usd"] != 3150000.0 || d["complete"] != nil || d["accepted"] != nil {
		t.Errorf("%v", d)
	}
	if r := b.run("batch", "run", good, "--key", "k", "--dry-run"); r.code != exitOK || r.out != "250 payments in 3 batches; nothing was sent\nCURRENCY  PAYMENTS  AMOUNT\nusd       250       31500.00 USD\n" {
		t.Errorf("%+v", r)
	}
	bad := writeFile(t, "bad.csv", "amount_decimal,currency,payment_method,customer\n1.00,usd,pm_1,\n\"1,234\",usd,pm_1,\n1.00,usd,pm_1,"+card+"\n")
	for _, args := range [][]string{{"--dry-run"}, {"--api-url", "http://127.0.0.1:1", "--api-key", "opk_x"}} {
		r := b.run(append([]string{"batch", "run", bad, "--key", "k", "--json"}, args...)...)
		lines := strings.Split(r.err, "\n")
		if r.code != exitUsage || r.out != "" || len(lines) != 4 || !strings.HasPrefix(lines[0], "row 2 (line 3), column amount_decimal: ") || !strings.HasPrefix(lines[1], "row 3 (line 4), column customer: ") ||
			lines[2] != "oncepay: the file is refused: 2 faults; nothing was sent" || strings.Contains(r.err, card) || strings.Contains(r.err, "1,234") {
			t.Errorf("%+v", r)
		}
	}
}

// TestBatchRun: a file is paid once however often it is run; its batches are shown by id, by key and together.
func TestBatchRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, migrate)
	sim, address, key := b.serveAPI()
	keyFile := writeFile(t, "key", key+"\n")
	door := []string{"--api-url", address, "--api-key", "file:" + keyFile}
	run := func(name string, more ...string) []string {
		return append(append([]string{"batch", "run", name, "--key"}, more...), door...)
	}
	name := writeFile(t, "payments.csv", rowsOf(250, "description", "d"))
	d := b.json(run(name, "pay")...)
	succeeded := d["by_status"].(map[string]any)["succeeded"].(map[string]any)
	if d["parent"] != "pay" || d["batches"] != 3.0 || d["count"] != 250.0 || d["accepted"] != 250.0 || d["complete"] != true || succeeded["count"] != 250.0 || succeeded["amount"].(map[string]any)["usd"] != 3150000.0 {
		t.Fatalf("%v", d)
	}
	// Again, from standard input, without a terminal.
	r := b.with(rowsOf(250, "description", "d"), run("-", "pay", "--format", "csv")...)
	if r.code != exitOK || !strings.Contains(r.out, "succeeded  250       31500.00 USD") || !strings.Contains(r.err, "3 of 3 batches had been accepted before\n") || strings.ContainsAny(r.err, "\x1b\r") {
		t.Errorf("%+v", r)
	}
	if r := b.run(run(name, "pay", "--no-wait")...); r.code != exitOK || r.out != "250 payments accepted in 3 batches under pay\n" ||
		!strings.Contains(r.err, "and so does `oncepay batch show pay` to operators") {
		t.Errorf("%+v", r)
	}
	if got := sim.Summary(); got.Charges != 250 || got.DoubleCharges != 0 {
		t.Errorf("%+v", got)
	}
	// The same key with another file.
	r = b.run(run(writeFile(t, "other.csv", rowsOf(250, "description", "e")), "pay")...)
	if r.code != exitUsage || r.out != "" || !strings.Contains(r.err, "this is not the same file, it differs in row 1, column description, row 2, column description") || !strings.HasSuffix(r.err, "; nothing new was sent\n") {
		t.Errorf("%+v", r)
	}
	show := func(args ...string) map[string]any { return b.json(append([]string{"batch", "show"}, args...)...) }
	whole := show("pay", "--tenant", "demo")
	if whole["parent"] != "pay" || whole["batches"] != 3.0 || whole["count"] != 250.0 || whole["complete"] != true || fmt.Sprint(whole["by_status"]) != fmt.Sprint(d["by_status"]) {
		t.Errorf("%v", whole)
	}
	id := payments.NewID("demo", "pay.000002").Format(payments.KindBatch)
	for _, one := range []map[string]any{show(id), show(id, "--tenant", "demo"), show("pay.000002", "--tenant", "demo")} {
		if one["id"] != id || one["idempotency_key"] != "pay.000002" || one["parent"] != "pay" || one["count"] != 50.0 || one["complete"] != true {
			t.Errorf("%v", one)
		}
	}
	for _, by := range [][]string{{id}, {id, "--tenant", "demo"}, {"pay.000002", "--tenant", "demo"}} {
		page := list(t, b.json(append([]string{"payments", "list", "--limit", "60", "--batch"}, by...)...))
		if len(page) != 50 || page[49].(map[string]any)["idempotency_key"] != "pay.000002::49" {
			t.Errorf("payments list --batch %q: %d payments", by, len(page))
		}
	}
	for _, args := range [][]string{{"payments", "show", id}, {"payments", "show", id, "--tenant", "demo"}, {"payments", "show", "--tenant", "demo", "--key", "pay.000002"},
		{"payments", "resolve", id, "--as", "failed", "--reason", "test", "--yes"}, {"payments", "list", "--tenant", "demo", "--key", "pay.000002"}, {"payments", "list", "--key", "pay.000002"}} {
		b.fails(b.run(args...), exitFailed, "batch", "`oncepay batch show "+id+"`")
	}
	b.fails(b.run("payments", "list", "--batch", "bat_00000000000000000000000000000000"), exitFailed, "no batch with this id")
	b.fails(b.run("payments", "list", "--batch", "none", "--tenant", "demo"), exitFailed, "no ")
	if r := b.run("batch", "show", "pay", "--tenant", "demo"); r.code != exitOK || !strings.Contains(r.out, "batches         3\n") || !strings.Contains(r.out, "succeeded  250") {
		t.Errorf("%+v", r)
	}
	b.alone(id, d)
	b.fails(b.run("batch", "show", "none", "--tenant", "demo"), exitFailed, "no batch and no run")
	b.fails(b.run("batch", "show", "pay", "--tenant", "nobody"), exitFailed, "no batch and no run")
	b.fails(b.run("batch", "show", "bat_00000000000000000000000000000000"), exitFailed, "no batch with this id")
	// What waits for a person is exit code 1, and the document is there all the same.
	r = b.run(run(writeFile(t, "held.csv", rowsOf(2, "capture_method", "manual")), "held", "--json")...)
	if r.code != exitFailed || oneDocument(t, r.out)["complete"] != false || !strings.Contains(r.err, "2 payments wait for a person (requires_capture): operators see them with `oncepay payments list --status requires_capture`") ||
		!strings.Contains(r.err, "2 payments did not succeed:\nROW  PAYMENT") {
		t.Errorf("%+v", r)
	}
	// A key that may do nothing here.
	other := b.json("keys", "create", "--tenant", "demo", "--scopes", "payments:read")["key"].(string)
	r = b.run("batch", "run", name, "--key", "new", "--api-url", address, "--api-key", other)
	if r.code != exitUsage || !strings.Contains(r.err, "nothing was sent") || !strings.Contains(r.err, "needs the scopes batches:write and payments:read") || strings.Contains(r.err, other) {
		t.Errorf("%+v", r)
	}
}

// alone shows a batch and a run by their keys, without their tenant, as long as no other tenant has the same.
func (b *bench) alone(id string, run map[string]any) {
	b.t.Helper()
	b.json("tenants", "create", "alone")
	b.json("tenants", "create", "zero")
	if whole := b.json("batch", "show", "pay"); whole["batches"] != 3.0 || fmt.Sprint(whole["by_status"]) != fmt.Sprint(run["by_status"]) {
		b.t.Errorf("%v", whole)
	}
	if one := b.json("batch", "show", "pay.000002"); one["id"] != id {
		b.t.Errorf("%v", one)
	}
	b.fails(b.run("batch", "show", "none"), exitFailed, "no tenant has a batch or a run")
	store, err := postgres.Open(b.t.Context(), b.set["ONCEPAY_DATABASE_URL"], postgres.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	defer store.Close(b.t.Context())
	other := payments.BatchRequest{TenantID: "alone", IdempotencyKey: "pay.000002", Payments: []payments.Intent{{Amount: 100, Currency: "usd", PaymentMethod: "pm_card_visa"}}}
	if _, err := store.AdmitBatch(b.t.Context(), other); err != nil {
		b.t.Fatal(err)
	}
	b.fails(b.run("batch", "show", "pay.000002"), exitUsage, "--tenant: is required: several tenants")
	if one := b.json("batch", "show", "pay.000002", "--tenant", "alone"); one["count"] != 1.0 {
		b.t.Errorf("%v", one)
	}
	if whole := b.json("batch", "show", "pay"); whole["batches"] != 3.0 {
		b.t.Errorf("%v", whole)
	}
}

// TestBatchInterrupted: a run that is told to stop says how far it is, and leaves no copy of standard input.
func TestBatchInterrupted(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"data":[],"next_cursor":null}`)
			return
		}
		key := r.Header.Get("Idempotency-Key")
		if key != "run.000000" {
			_, _ = io.Copy(io.Discard, r.Body)
			close(arrived)
			<-r.Context().Done()
			return
		}
		var children []map[string]any
		for i := range 100 {
			children = append(children, map[string]any{"index": i, "id": "pay_x", "idempotency_key": fmt.Sprintf("%s::%d", key, i), "status": "received"})
		}
		w.WriteHeader(http.StatusAccepted)
		_ = json.NewEncoder(w).Encode(map[string]any{"id": "bat_x", "payments": children})
	}))
	t.Cleanup(door.Close)
	dir := t.TempDir()
	c := exec.Command(os.Args[0], "batch", "run", "-", "--format", "csv", "--key", "run", "--concurrency", "1")
	c.Env = append(os.Environ(), programEnv+"=1", "TMPDIR="+dir, "ONCEPAY_API_URL="+door.URL, "ONCEPAY_API_KEY=opk_x")
	c.Stdin = strings.NewReader(rowsOf(300, "description", "d"))
	var out, err bytes.Buffer
	c.Stdout, c.Stderr = &out, &err
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-arrived:
	case <-time.After(patience):
		_ = c.Process.Kill()
		t.Fatal("nothing arrives")
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	failed := c.Wait()
	if c.ProcessState.ExitCode() != exitFailed || out.Len() > 0 || !strings.HasSuffix(err.String(), "oncepay: interrupted: 100 of 300 payments are accepted; the same command goes on from there\n") {
		t.Errorf("%v: %q, %q", failed, out.String(), err.String())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
