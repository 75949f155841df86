package ingress

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

const (
	acmeSecret   = "opk_acme"
	globexSecret = "opk_globex"
)

// logged is a log that can be read while it is written.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// desk is an API on a fake store with a key of every scope for each of two tenants.
type desk struct {
	t     *testing.T
	api   *API
	store *fakeStore
	clock *fakeClock
	log   *logged
}

func newDesk(t *testing.T, change ...func(*Config)) *desk {
	t.Helper()
	clock := newFakeClock()
	d := &desk{t: t, clock: clock, store: newFakeStore(clock), log: &logged{}}
	d.store.addKey(acmeSecret, "acme", payments.Scopes()...)
	d.store.addKey(globexSecret, "globex", payments.Scopes()...)
	cfg := Config{Store: d.store, FollowUps: d.store, Batches: d.store, Reader: d.store, FollowUpReader: d.store, Keys: d.store, Clock: clock, Log: slog.New(slog.NewTextHandler(d.log, nil))}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	if d.api, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	return d
}

// reply is an answer as a client sees it.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// with is a change to a request: pairs of header names and values, added line by line.
func with(pairs ...string) func(*http.Request) {
	return func(r *http.Request) {
		for i := 0; i < len(pairs); i += 2 {
			r.Header.Add(pairs[i], pairs[i+1])
		}
	}
}

// as makes the request somebody else's.
func as(secret string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secret) }
}

func newRequest(method, target, body string, change ...func(*http.Request)) *http.Request {
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, target, reader)
	r.Header.Set("Authorization", "Bearer "+acmeSecret)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, f := range change {
		f(r)
	}
	return r
}

func (d *desk) send(r *http.Request) reply {
	d.t.Helper()
	return send(d.t, d.api.Handler(), r)
}

func send(t *testing.T, h http.Handler, r *http.Request) reply {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	got := reply{w.Code, w.Header(), w.Body.Bytes()}
	got.check(t)
	return got
}

func (d *desk) get(target string, change ...func(*http.Request)) reply {
	d.t.Helper()
	return d.send(newRequest(http.MethodGet, target, "", change...))
}

func (d *desk) post(target, key, body string, change ...func(*http.Request)) reply {
	d.t.Helper()
	return d.send(newRequest(http.MethodPost, target, body, append([]func(*http.Request){with("Idempotency-Key", key)}, change...)...))
}

// check is what holds of every answer.
func (g reply) check(t *testing.T) {
	t.Helper()
	media := mediaJSON
	if g.status >= 400 {
		media = mediaProblem
	}
	h := g.header
	if h.Get("Content-Type") != media || h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" || len(h.Get("Request-Id")) != 24 || !json.Valid(g.body) {
		t.Errorf("%d %v %q", g.status, h, g.body)
	}
	if g.status >= 400 {
		g.checkProblem(t)
	}
}

// checkProblem holds a problem against RFC 9457 and the table of codes.
func (g reply) checkProblem(t *testing.T) {
	t.Helper()
	var p struct {
		Type, Title, Code, Detail string
		Status                    int
		Errors                    []struct{ Field, Message string }
		Differs                   *[]string
	}
	decoder := json.NewDecoder(bytes.NewReader(g.body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p); err != nil {
		t.Errorf("%s: %v", g.body, err)
		return
	}
	kind := kindOf(Code(p.Code))
	if string(kind.Code) != p.Code || p.Type != "/docs#"+p.Code || p.Title != kind.Title || p.Status != kind.Status || g.status != kind.Status || p.Detail == "" {
		t.Errorf("%d %s", g.status, g.body)
	}
	if (p.Code == "invalid_request") != (len(p.Errors) > 0) || (p.Code == "idempotency_key_reused") != (p.Differs != nil) {
		t.Errorf("errors or differs: %s", g.body)
	}
	for _, e := range p.Errors {
		if e.Field == "" || e.Message == "" || len(p.Errors) == 1 && p.Detail != e.Field+": "+e.Message {
			t.Errorf("errors: %s", g.body)
		}
	}
	if (g.status == 401) != (g.header.Get("WWW-Authenticate") == "Bearer") || (g.status == 429 || g.status == 503) != (g.header.Get("Retry-After") != "") {
		t.Errorf("%d %v", g.status, g.header)
	}
}

// member reads one member of the answer.
func (g reply) member(name string) any {
	var doc map[string]any
	if err := json.Unmarshal(g.body, &doc); err != nil {
		return err
	}
	return doc[name]
}

func (g reply) code() string { s, _ := g.member("code").(string); return s }

// fields lists the fields of errors.
func (g reply) fields() (list []string) {
	var doc struct{ Errors []struct{ Field string } }
	_ = json.Unmarshal(g.body, &doc)
	for _, e := range doc.Errors {
		list = append(list, e.Field)
	}
	return list
}

func (g reply) differs() (list []string) {
	var doc struct{ Differs []string }
	_ = json.Unmarshal(g.body, &doc)
	return doc.Differs
}

func (g reply) is(t *testing.T, what string, status int, code string) {
	t.Helper()
	if g.status != status || g.code() != code {
		t.Errorf("%s: %d %s, want %d %s", what, g.status, g.body, status, code)
	}
}

const goodBody = `{"amount":9900,"currency":"usd","customer":"cus_1","payment_method":"pm_card_visa"}`

const goodBatch = `{"payments":[{"amount":100,"currency":"usd","payment_method":"pm_1"},{"amount":200,"currency":"eur","payment_method":"pm_2"}],"parent":"run-1"}`

// patience is how long anything may take on a busy machine.
const patience = 2 * time.Minute

// waitFor waits until something that other goroutines do is so.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("never came: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}
