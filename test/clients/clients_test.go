package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepay/oncepay/ingress/apidoc/apidoctest"
	"github.com/oncepay/oncepay/payments"
)

// limit bounds everything that starts once the stack is up.
const limit = 6 * time.Minute

// client is one of the examples: its name and the command that runs it.
type client struct {
	name    string
	command []string
}

// TestClients runs every example in every way, and then holds what Stripe charged against what they asked for.
func TestClients(t *testing.T) {
	needed := map[string]string{}
	for _, program := range []string{"sh", "curl", "awk", "python3", "node", "npm", "go"} {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Fatalf("this test runs the examples and needs %s: install it, and put it into PATH: %v", program, err)
		}
		needed[program] = path
	}
	s := startStack(t)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	flaky := startProxy(t, s.api)
	clients := []client{
		{"curl", []string{needed["sh"], example("curl", "pay.sh")}},
		{"go", []string{buildGo(ctx, t)}},
		{"python", []string{needed["python3"], "-B", "-W", "error", example("python", "pay.py")}},
		{"typescript", []string{needed["node"], compileTypeScript(ctx, t, needed["npm"], needed["node"])}},
	}
	t.Run("examples", func(t *testing.T) {
		for _, c := range clients {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.twice(ctx, t, s)
				c.lossy(ctx, t, s, flaky)
				c.refused(ctx, t, s)
				c.misused(ctx, t, s)
			})
		}
	})
	want := map[string]int64{}
	for _, c := range clients {
		for _, key := range []string{c.key("twice"), c.key("lossy")} {
			for i, amount := range []int64{9900, 1000, 2000, 3000} {
				want[paymentID(t, key, i)] = amount
			}
		}
	}
	s.checkLedger(ctx, t, want)
	s.checkPayments(ctx, t, want)
	s.checkDescription(ctx, t, clients[0].key("twice"))
}

func example(parts ...string) string {
	return filepath.Join(append([]string{"..", "..", "examples"}, parts...)...)
}

func (c client) key(way string) string { return c.name + "-" + way }

// paymentID is the id of what an example pays for: 0 is the payment under the key, i from 1 the payments of the batch after it.
func paymentID(t *testing.T, key string, i int) string {
	t.Helper()
	if i > 0 {
		child, err := payments.ChildKey(key+"-batch", i-1)
		if err != nil {
			t.Fatal(err)
		}
		key = child
	}
	return payments.NewID("demo", key).String()
}

// run runs the example and returns its output and its exit status.
func (c client) run(ctx context.Context, t *testing.T, address, apiKey string, arguments ...string) (stdout, stderr string, exit int) {
	t.Helper()
	cmd := exec.CommandContext(ctx, c.command[0], append(slices.Clone(c.command[1:]), arguments...)...)
	cmd.WaitDelay = 5 * time.Second
	cmd.SysProcAttr = endWithParent()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "ONCEPAY_API_URL=" + address, "ONCEPAY_API_KEY=" + apiKey}
	var out, diagnostics bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diagnostics
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && (!errors.As(err, &ended) || ended.ExitCode() < 0) {
		t.Fatalf("%s: %v\n%s", c.name, err, diagnostics.String())
	}
	return out.String(), diagnostics.String(), cmd.ProcessState.ExitCode()
}

func (c client) succeeds(ctx context.Context, t *testing.T, address, apiKey, key string) {
	t.Helper()
	stdout, stderr, exit := c.run(ctx, t, address, apiKey, key)
	batch := payments.NewID("demo", key+"-batch").Format(payments.KindBatch)
	refund := payments.NewID("demo", key+"-refund").Format(payments.KindRefund)
	want := fmt.Sprintf("payment %s: succeeded\nrefund %s: succeeded\nbatch %s: complete\n", paymentID(t, key, 0), refund, batch)
	if exit != 0 || stdout != want {
		t.Fatalf("%s ended with %d and said\n%s%s\nwant 0 and\n%s", key, exit, stdout, stderr, want)
	}
}

// twice: a second run under the same key finds what the first has done.
func (c client) twice(ctx context.Context, t *testing.T, s stack) {
	t.Helper()
	c.succeeds(ctx, t, s.api, s.key, c.key("twice"))
	c.succeeds(ctx, t, s.api, s.key, c.key("twice"))
}

// lossy: an answer that is lost, and a server that asks for patience, cost repeats under the same key with the same body, and no charge.
func (c client) lossy(ctx context.Context, t *testing.T, s stack, p *proxy) {
	t.Helper()
	c.succeeds(ctx, t, p.url, s.key, c.key("lossy"))
	for _, key := range []string{c.key("lossy"), c.key("lossy") + "-refund", c.key("lossy") + "-batch"} {
		at, bodies := p.seen(key)
		if len(at) != 3 {
			t.Errorf("%s was sent %d times, want 3: one answer lost, one 503, and one that came through", key, len(at))
			continue
		}
		if len(slices.Compact(bodies)) != 1 {
			t.Errorf("%s: the repeats have other bodies", key)
		}
		if pause := at[2].Sub(at[1]); pause < patience-50*time.Millisecond {
			t.Errorf("%s was sent again after %v; Retry-After asked for %v", key, pause, patience)
		}
	}
}

// refused: what a repeat would not change is not repeated.
func (c client) refused(ctx context.Context, t *testing.T, s stack) {
	t.Helper()
	var sent atomic.Int64
	api, err := url.Parse(s.api)
	if err != nil {
		t.Fatal(err)
	}
	through := httputil.NewSingleHostReverseProxy(api)
	counting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent.Add(1)
		through.ServeHTTP(w, r)
	}))
	defer counting.Close()
	stdout, stderr, exit := c.run(ctx, t, counting.URL, "opk_wrong", c.key("refused"))
	if exit != 1 || stdout != "" || !strings.Contains(stderr, "unauthorized") {
		t.Errorf("with a wrong API key it ended with %d and said\n%s%s", exit, stdout, stderr)
	}
	if n := sent.Load(); n != 1 {
		t.Errorf("a request that is refused with 401 was sent %d times", n)
	}
}

// misused: a newcomer is told how to call it.
func (c client) misused(ctx context.Context, t *testing.T, s stack) {
	t.Helper()
	for _, wrong := range []struct {
		address, key string
		arguments    []string
	}{{s.api, s.key, nil}, {s.api, s.key, []string{"a", "b"}}, {"", s.key, []string{"a"}}, {s.api, "", []string{"a"}}} {
		stdout, stderr, exit := c.run(ctx, t, wrong.address, wrong.key, wrong.arguments...)
		if exit != 2 || stdout != "" || !strings.HasPrefix(stderr, "usage: ") {
			t.Errorf("called wrongly it ended with %d and said\n%s%s", exit, stdout, stderr)
		}
	}
}

func buildGo(ctx context.Context, t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "pay")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./examples/go")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build ./examples/go: %v\n%s", err, out)
	}
	return program
}

// compileTypeScript checks the example and takes its types off, and returns the JavaScript's file.
func compileTypeScript(ctx context.Context, t *testing.T, npm, node string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	install := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	compile := exec.CommandContext(ctx, node, filepath.Join(dir, "node_modules", "typescript", "bin", "tsc"), "--project", example("typescript"),
		"--typeRoots", filepath.Join(dir, "node_modules", "@types"), "--outDir", filepath.Join(dir, "out"))
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("tsc: %v\n%s", err, out)
	}
	return filepath.Join(dir, "out", "pay.js")
}

// checkLedger: Stripe charged exactly these payments, each once.
func (s stack) checkLedger(ctx context.Context, t *testing.T, want map[string]int64) {
	t.Helper()
	var ledger struct {
		Charges []struct {
			Amount        int64
			PaymentIntent string `json:"payment_intent"`
			Metadata      map[string]string
		}
		Refunds []struct {
			Amount        int64
			Status        string
			PaymentIntent string `json:"payment_intent"`
		}
	}
	s.read(ctx, t, s.stripe+"/_sim/ledger", &ledger)
	got, of := map[string][]int64{}, map[string]string{}
	for _, c := range ledger.Charges {
		id := c.Metadata["oncepay_payment"]
		got[id], of[c.PaymentIntent] = append(got[id], c.Amount), id
	}
	back := map[string][]int64{}
	for _, r := range ledger.Refunds {
		back[of[r.PaymentIntent]] = append(back[of[r.PaymentIntent]], r.Amount)
	}
	for id, amount := range want {
		if amount == 9900 && !slices.Equal(back[id], []int64{2500}) || amount != 9900 && back[id] != nil {
			t.Errorf("%s: Stripe gave back %v", id, back[id])
		}
	}
	for id, amount := range want {
		if !slices.Equal(got[id], []int64{amount}) {
			t.Errorf("%s: Stripe charged %v, want %d once", id, got[id], amount)
		}
	}
	for id, amounts := range got {
		if _, asked := want[id]; !asked {
			t.Errorf("Stripe charged %v for %q, which nobody asked for", amounts, id)
		}
	}
	var summary struct {
		DoubleCharges int `json:"double_charges"`
		Unattributed  int
	}
	s.read(ctx, t, s.stripe+"/_sim/summary", &summary)
	if summary.DoubleCharges != 0 || summary.Unattributed != 0 {
		t.Errorf("the simulator's own count: %+v", summary)
	}
}

// checkPayments: the API knows these payments and no others.
func (s stack) checkPayments(ctx context.Context, t *testing.T, want map[string]int64) {
	t.Helper()
	var list struct {
		Data []struct {
			ID, Status string
			Captured   int64 `json:"amount_captured"`
			Refunded   int64 `json:"amount_refunded"`
		}
		NextCursor *string `json:"next_cursor"`
	}
	s.read(ctx, t, s.api+"/v1/payments?limit="+strconv.Itoa(len(want)+10), &list)
	if len(list.Data) != len(want) || list.NextCursor != nil {
		t.Errorf("the API lists %d payments, want %d", len(list.Data), len(want))
	}
	for _, p := range list.Data {
		if p.Status != "succeeded" || p.Captured != want[p.ID] || (p.Refunded == 2500) != (want[p.ID] == 9900) {
			t.Errorf("%s is %s with %d captured and %d refunded, want succeeded with %d", p.ID, p.Status, p.Captured, p.Refunded, want[p.ID])
		}
	}
}

// checkDescription: over the wire the answers are as the OpenAPI document says, those of the process's own door included.
func (s stack) checkDescription(ctx context.Context, t *testing.T, key string) {
	t.Helper()
	id, batch := paymentID(t, key, 0), payments.NewID("demo", key+"-batch").Format(payments.KindBatch)
	for _, path := range []string{
		"/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", "/v1/payments", "/v1/payments/" + id, "/v1/payments/" + id + "/events",
		"/v1/batches", "/v1/batches/" + batch, "/v1/payments/pay_1", "/v1/nothing", "/v1/payments/" + id + "/refunds",
		"/v1/refunds/" + payments.NewID("demo", key+"-refund").Format(payments.KindRefund),
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			r, err := http.NewRequestWithContext(ctx, method, s.api+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(path, "/v1/") {
				r.Header.Set("Authorization", "Bearer "+s.key)
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(answer.Body)
			if err := errors.Join(err, answer.Body.Close()); err != nil {
				t.Fatal(err)
			}
			apidoctest.Check(t, method, path, answer.StatusCode, answer.Header, body)
			if missing := path == "/v1/payments/pay_1" || path == "/v1/nothing"; missing != (answer.StatusCode == http.StatusNotFound) {
				t.Errorf("%s %s: %s", method, path, answer.Status)
			}
		}
	}
}
