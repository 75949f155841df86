package stripesim

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeClock is a clock that only tests move.
type fakeClock struct {
	mu sync.Mutex
	t  time.Time
}

func newFakeClock() *fakeClock { return &fakeClock{t: time.Unix(1_700_000_000, 0).UTC()} }

func (c *fakeClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *fakeClock) add(d time.Duration) {
	c.mu.Lock()
	c.t = c.t.Add(d)
	c.mu.Unlock()
}

// rig is a simulator behind a real listener, with a client that never re-sends.
type rig struct {
	t      *testing.T
	sim    *Server
	web    *httptest.Server
	client *http.Client
	clock  *fakeClock
}

func newRig(t *testing.T, opts Options) *rig {
	t.Helper()
	clock := newFakeClock()
	if opts.Clock == nil {
		opts.Clock = clock.now
	}
	sim, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, sim: sim, clock: clock}
	r.web = httptest.NewServer(sim)
	// One connection a request: net/http re-sends keyed POSTs on reused ones.
	r.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	t.Cleanup(r.stop)
	return r
}

func (r *rig) stop() {
	r.web.CloseClientConnections()
	if err := r.sim.Close(); err != nil {
		r.t.Error("Close:", err)
	}
	r.web.Close()
}

// call is one request; zero members are left out.
type call struct {
	method, path, key, fault, account, secret, contentType string
	form                                                   url.Values
	body                                                   string // instead of form
	ctx                                                    context.Context
}

// result is what the client saw: err, or an answer.
type result struct {
	err    error // of the transport or of reading the body
	status int
	header http.Header
	body   string
}

func (r *rig) do(c call) result {
	if c.method == "" {
		c.method = "POST"
	}
	if c.ctx == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		c.ctx = ctx
	}
	body := c.body
	if body == "" {
		body = c.form.Encode()
	}
	target := r.web.URL + c.path
	if c.method == "GET" && body != "" {
		target, body = target+"?"+body, ""
	}
	req, err := http.NewRequestWithContext(c.ctx, c.method, target, strings.NewReader(body))
	if err != nil {
		return result{err: err}
	}
	if c.secret == "" {
		c.secret = "sk_test_123"
	}
	if c.secret != "none" {
		req.Header.Set("Authorization", "Bearer "+c.secret)
	}
	if c.contentType == "" {
		c.contentType = "application/x-www-form-urlencoded"
	}
	req.Header.Set("Content-Type", c.contentType)
	for k, v := range map[string]string{"Idempotency-Key": c.key, "Oncepay-Sim-Fault": c.fault, "Stripe-Account": c.account} {
		if v != "" {
			req.Header.Set(k, v)
		}
	}
	res, err := r.client.Do(req)
	if err != nil {
		return result{err: err}
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return result{err: err, status: res.StatusCode, header: res.Header, body: string(b)}
}

// object decodes the body into a map.
func (res result) object(t *testing.T) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(res.body), &m); err != nil {
		t.Fatalf("body is no JSON object: %v: %q", err, res.body)
	}
	return m
}

// at walks a dotted path through nested objects; nil if it ends early.
func at(m any, path string) any {
	for part := range strings.SplitSeq(path, ".") {
		obj, ok := m.(map[string]any)
		if !ok {
			return nil
		}
		m = obj[part]
	}
	return m
}

// want checks the status and some members of the body.
func (res result) want(t *testing.T, status int, members map[string]any) map[string]any {
	t.Helper()
	if res.err != nil {
		t.Fatalf("no answer: %v", res.err)
	}
	if res.status != status {
		t.Fatalf("status %d, want %d: %s", res.status, status, res.body)
	}
	m := res.object(t)
	for path, want := range members {
		if got := at(m, path); got != want {
			t.Errorf("%s = %#v, want %#v in %s", path, got, want, res.body)
		}
	}
	return m
}

func form(kv ...string) url.Values {
	v := url.Values{}
	for i := 0; i+1 < len(kv); i += 2 {
		v.Set(kv[i], kv[i+1])
	}
	return v
}

// pay is a create and confirm, off-session, with changes.
func pay(kv ...string) url.Values {
	v := form("amount", "2000", "currency", "usd", "confirm", "true", "off_session", "true", "payment_method", "pm_card_visa",
		"metadata[oncepay_payment]", "pay_1", "metadata[oncepay_namespace]", "test")
	for i := 0; i+1 < len(kv); i += 2 {
		if kv[i+1] == "" {
			v.Del(kv[i])
			continue
		}
		v.Set(kv[i], kv[i+1])
	}
	return v
}

func (r *rig) pay(key string, kv ...string) result {
	return r.do(call{path: intentsPath, key: key, form: pay(kv...)})
}

func (r *rig) get(path string, kv ...string) result {
	return r.do(call{method: "GET", path: path, form: form(kv...)})
}

func (r *rig) control(method, path, body string) result {
	return r.do(call{method: method, path: path, body: body, secret: "none", contentType: "application/json"})
}

// listed are the ids of the first page, newest first.
func (r *rig) listed(kv ...string) []string {
	r.t.Helper()
	res := r.get(intentsPath, kv...)
	m := res.want(r.t, 200, map[string]any{"object": "list"})
	ids := []string{}
	for _, x := range m["data"].([]any) {
		ids = append(ids, x.(map[string]any)["id"].(string))
	}
	return ids
}

func (r *rig) last() Request {
	r.t.Helper()
	l := r.sim.Ledger()
	if len(l.Requests) == 0 {
		r.t.Fatal("the ledger has no requests")
	}
	return l.Requests[len(l.Requests)-1]
}

// deadline is for tests that wait on a signal of the simulator.
func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func mustNil(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// isReset says whether the connection ended by RST.
func isReset(err error) bool { return err != nil && errors.Is(err, errReset) }

func newContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 2*time.Minute)
}

func newRequest(t *testing.T, r *rig, f url.Values) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(deadline(t), "POST", r.web.URL+intentsPath, strings.NewReader(f.Encode()))
	mustNil(t, err)
	req.Header.Set("Authorization", "Bearer sk_test_123")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return req
}
