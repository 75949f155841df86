package ingress

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/oncepay/oncepay/ingress/apidoc"
	"github.com/oncepay/oncepay/ingress/apidoc/apidoctest"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// elsewhere are the routes of the document that the server's own door serves, beside this API.
var elsewhere = []string{"GET /healthz", "GET /metrics", "GET /readyz"}

// TestRoutesAreDescribed: the document has the routes of the mux with their scopes, and no others.
func TestRoutesAreDescribed(t *testing.T) {
	t.Parallel()
	served := []string{"GET /docs", "GET /openapi.json"}
	for _, r := range Routes() {
		served = append(served, r.Method+" "+r.Path)
		if got := apidoctest.Scopes(t, r.Method+" "+r.Path); !slices.Equal(got, []string{string(r.Scope)}) {
			t.Errorf("%s %s needs %s, described are %v", r.Method, r.Path, r.Scope, got)
		}
	}
	served = append(served, elsewhere...)
	slices.Sort(served)
	if described := apidoctest.Routes(t); !slices.Equal(described, served) {
		t.Errorf("described %v\n   served %v", described, served)
	}
}

// TestCodesAreDescribed: the document explains the codes of the API, with their statuses and titles, and no others.
func TestCodesAreDescribed(t *testing.T) {
	t.Parallel()
	var described []Kind
	for _, p := range apidoctest.Problems(t) {
		described = append(described, Kind{Code(p.Code), p.Status, p.Title})
	}
	for _, k := range Kinds() {
		if !slices.Contains(described, k) {
			t.Errorf("%+v is not described", k)
		}
	}
	if len(described) != len(Kinds()) {
		t.Errorf("%d codes are described, there are %d", len(described), len(Kinds()))
	}
}

// TestSizesAreDescribed: the document's words on the sizes of bodies are right.
func TestSizesAreDescribed(t *testing.T) {
	t.Parallel()
	if text := string(apidoc.Document()); PaymentBodyMax != 64<<10 || BatchBodyMax != 900<<10 || !strings.Contains(text, "64 KiB") || !strings.Contains(text, "900 KiB") {
		t.Errorf("%d and %d bytes are not what the document says", PaymentBodyMax, BatchBodyMax)
	}
}

// witness holds every answer against the document, and remembers what it has seen.
type witness struct {
	t     *testing.T
	mu    sync.Mutex
	seen  map[string]map[int]map[string]bool // codes, by route and status
	codes map[string]bool
}

// ask sends a request to the API behind d; route is the operation that it means, or "" for none.
func (w *witness) ask(d *desk, route string, r *http.Request) reply {
	w.t.Helper()
	return w.askHandler(d.api.Handler(), route, r)
}

func (w *witness) askHandler(h http.Handler, route string, r *http.Request) reply {
	w.t.Helper()
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, r)
	got := reply{recorder.Code, recorder.Header(), recorder.Body.Bytes()}
	apidoctest.Check(w.t, r.Method, r.URL.Path, got.status, got.header, got.body)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen[route] == nil {
		w.seen[route] = map[int]map[string]bool{}
	}
	if w.seen[route][got.status] == nil {
		w.seen[route][got.status] = map[string]bool{}
	}
	if got.status >= 400 {
		w.seen[route][got.status][got.code()] = true
		w.codes[got.code()] = true
	}
	return got
}

// described is one operation, and how to ask for it.
type described struct {
	route        string
	target, body string
}

func (c described) request(change ...func(*http.Request)) *http.Request {
	method, _, _ := strings.Cut(c.route, " ")
	if c.body != "" {
		change = append([]func(*http.Request){with("Idempotency-Key", "order-1")}, change...)
	}
	return newRequest(method, c.target, c.body, change...)
}

func operations() []described {
	id := payments.NewID("acme", "order-1")
	batch := payments.NewID("acme", "run-1").Format(payments.KindBatch)
	return []described{
		{"POST /v1/payments", "/v1/payments", goodBody},
		{"GET /v1/payments", "/v1/payments", ""},
		{"GET /v1/payments/{id}", "/v1/payments/" + id.String(), ""},
		{"GET /v1/payments/{id}/events", "/v1/payments/" + id.String() + "/events", ""},
		{"POST /v1/batches", "/v1/batches", goodBatch},
		{"GET /v1/batches", "/v1/batches", ""},
		{"GET /v1/batches/{id}", "/v1/batches/" + batch, ""},
		{"POST /v1/payments/{id}/capture", "/v1/payments/" + id.String() + "/capture", `{"amount":100}`},
		{"POST /v1/payments/{id}/cancel", "/v1/payments/" + id.String() + "/cancel", `{"reason":"duplicate"}`},
		{"POST /v1/payments/{id}/refunds", "/v1/payments/" + id.String() + "/refunds", `{"amount":100,"reason":"duplicate","metadata":{"rma":"1"}}`},
		{"GET /v1/payments/{id}/refunds", "/v1/payments/" + id.String() + "/refunds", ""},
		{"GET /v1/refunds/{id}", "/v1/refunds/" + payments.NewID("acme", "refund-1").Format(payments.KindRefund), ""},
		{"GET /v1/operations/{id}", "/v1/operations/" + payments.NewID("acme", "capture-1").Format(payments.KindCapture), ""},
		{"GET /openapi.json", "/openapi.json", ""},
		{"GET /docs", "/docs", ""},
	}
}

// TestAnswersAreDescribed provokes every status and every code that the document has for every operation; each answer is as the document says.
func TestAnswersAreDescribed(t *testing.T) {
	t.Parallel()
	w := &witness{t: t, seen: map[string]map[int]map[string]bool{}, codes: map[string]bool{}}
	for _, c := range operations() {
		w.refusals(c)
	}
	w.payments()
	w.batches()
	w.followUps()
	w.otherwise()
	for _, route := range apidoctest.Routes(t) {
		for _, status := range apidoctest.Statuses(t, route) {
			if w.seen[route][status] == nil && !slices.Contains(elsewhere, route) {
				t.Errorf("%s: %d is described, and nothing here was answered so", route, status)
			}
			codes := apidoctest.Codes(t, route, status)
			if (len(codes) == 0) != (status < 400) && !slices.Contains(elsewhere, route) {
				t.Errorf("%s: %d has the codes %v", route, status, codes)
			}
			for _, code := range codes {
				if !w.seen[route][status][code] {
					t.Errorf("%s: %d %s is described, and nothing here was answered so", route, status, code)
				}
			}
		}
	}
	reserved := []Code{CodeSpendCapExceeded} // of caps, which are to come
	for _, k := range Kinds() {
		if w.codes[string(k.Code)] == slices.Contains(reserved, k.Code) {
			t.Errorf("%s: answered: %v", k.Code, w.codes[string(k.Code)])
		}
	}
}

func withDocs(c *Config) { c.Docs = apidoc.Handler() }

// refusals provokes what every operation can be refused with.
func (w *witness) refusals(c described) {
	w.t.Helper()
	d := newDesk(w.t, withDocs)
	if !strings.Contains(c.route, "/v1/") {
		got := w.ask(d, c.route, c.request())
		w.ask(d, c.route, c.request(with("If-None-Match", got.header.Get("ETag"))))
		w.ask(d, c.route, c.request(func(r *http.Request) { r.URL.RawQuery = "x=4242424242424242" }))
		w.askHandler(Closed(), c.route, c.request())
		return
	}
	w.askHandler(Closed(), c.route, c.request())
	d.store.addKey("opk_none", "acme")
	w.ask(d, c.route, c.request(func(r *http.Request) { r.Header.Del("Authorization") }))
	w.ask(d, c.route, c.request(as("opk_none")))
	w.ask(d, c.route, c.request(func(r *http.Request) { r.URL.RawQuery = "x=1" }))
	w.ask(d, c.route, c.request(func(r *http.Request) { r.URL.RawQuery = "x=4242424242424242" }))
	if strings.Contains(c.route, "{id}") {
		w.ask(d, c.route, c.request())
	}
	for _, err := range []error{errAway, payments.Errorf(payments.CodeInternal, "broken")} {
		d.store.setBefore(func(_ context.Context, verb string) error {
			if verb == "key" {
				return nil
			}
			return err
		})
		w.ask(d, c.route, c.request())
	}
	slow := newDesk(w.t, func(c *Config) { c.Rate, c.Burst = 0.001, 1 })
	w.ask(slow, c.route, c.request())
	w.ask(slow, c.route, c.request())
}

// keyFaults are the requests whose key or body is wrong in itself.
func (w *witness) keyFaults(d *desk, c described, tooLarge int) {
	w.t.Helper()
	w.ask(d, c.route, newRequest("POST", c.target, c.body))
	for _, key := range []string{"", "a b", "a::b", strings.Repeat("k", 256)} {
		w.ask(d, c.route, newRequest("POST", c.target, c.body, with("Idempotency-Key", key)))
	}
	for _, body := range []string{"{", `{"unknown":1}`, "{}", `{"amount":null}`, `{"payments":[]}`, strings.Replace(c.body, "{", `{"4242424242424242":1,`, 1), strings.Repeat(" ", tooLarge+1)} {
		w.ask(d, c.route, newRequest("POST", c.target, body, with("Idempotency-Key", "bad-1")))
	}
}

func (w *witness) payments() {
	w.t.Helper()
	next := []byte(`{"type":"use_stripe_sdk"}`)
	d := newDesk(w.t, withDocs, func(c *Config) {
		c.Actions = fakeActions(func(context.Context, payments.Payment) ([]byte, string, error) { return next, "pi_1_secret_x", nil })
	})
	post, list, show, events := operations()[0], operations()[1], operations()[2], operations()[3]
	w.keyFaults(d, post, PaymentBodyMax)
	apidoctest.CheckRequest(w.t, "POST", post.target, []byte(post.body))
	w.ask(d, post.route, post.request())
	w.ask(d, post.route, post.request())
	w.ask(d, post.route, newRequest("POST", post.target, strings.Replace(goodBody, "9900", "9901", 1), with("Idempotency-Key", `"order-1"`)))
	for _, status := range payments.Statuses() {
		d.store.set("acme", "order-1", status)
		w.ask(d, post.route, post.request(with("Prefer", "wait=0")))
		for _, c := range []described{show, events, list} {
			if got := w.ask(d, c.route, c.request()); got.status != 200 {
				w.t.Errorf("%s: %d %s", c.route, got.status, got.body)
			}
		}
		w.ask(d, show.route, show.request(with("Prefer", "wait=0")))
	}
	full := `{"idempotency_key":"order-2","tenant_id":"acme","kind":"charge","amount":9900,"currency":"EUR","customer":"cus_1","payment_method":"pm_1",` +
		`"description":"two shirts","statement_descriptor_suffix":"SHIRTS","receipt_email":"a@example.com","capture_method":"manual","off_session":false,` +
		`"return_url":"https://example.com/back","metadata":{"a":"1"},"expires_at":"2030-01-31T12:00:00Z"}`
	apidoctest.CheckRequest(w.t, "POST", post.target, []byte(full))
	if got := w.ask(d, post.route, newRequest("POST", post.target, full, with("Idempotency-Key", "order-2"))); got.status != 202 {
		w.t.Errorf("an intent with all members: %d %s", got.status, got.body)
	}
	for _, query := range []string{"limit=1", "limit=1&cursor=1", "limit=0", "cursor=x", "status=succeeded&customer=cus_1&idempotency_key=order-1", "status=x"} {
		w.ask(d, list.route, newRequest("GET", "/v1/payments?"+query, ""))
	}
	w.ask(d, list.route, newRequest("HEAD", "/v1/payments", ""))
}

func (w *witness) batches() {
	w.t.Helper()
	d := newDesk(w.t)
	post, list, show := operations()[4], operations()[5], operations()[6]
	w.keyFaults(d, post, BatchBodyMax)
	apidoctest.CheckRequest(w.t, "POST", post.target, []byte(post.body))
	named := func(body, key string) *http.Request {
		return newRequest("POST", post.target, body, with("Idempotency-Key", key))
	}
	w.ask(d, post.route, named(post.body, "run-1"))
	w.ask(d, post.route, named(post.body, "run-1"))
	w.ask(d, post.route, named(strings.Replace(post.body, "100", "101", 1), "run-1"))
	w.ask(d, post.route, named(post.body, strings.Repeat("k", 241)))
	for i, status := range payments.Statuses() {
		d.store.set("acme", "run-1::"+[]string{"0", "1"}[i%2], status)
		for _, c := range []described{show, list} {
			if got := w.ask(d, c.route, c.request()); got.status != 200 {
				w.t.Errorf("%s: %d %s", c.route, got.status, got.body)
			}
		}
	}
	w.ask(d, list.route, newRequest("GET", "/v1/batches?parent=run-1&limit=1", ""))
}

func (w *witness) followUps() {
	w.t.Helper()
	d := newDesk(w.t)
	d.charged("order-1", payments.StatusFailed, 0) // nothing can be asked of it
	capture, cancel, refund, list, show, operation := operations()[7], operations()[8], operations()[9], operations()[10], operations()[11], operations()[12]
	ask := func(c described, key, body string, change ...func(*http.Request)) reply {
		return w.ask(d, c.route, newRequest("POST", c.target, body, append(change, with("Idempotency-Key", key))...))
	}
	for _, c := range []described{capture, cancel, refund} {
		w.keyFaults(d, c, PaymentBodyMax)
		apidoctest.CheckRequest(w.t, "POST", c.target, []byte(c.body))
		apidoctest.CheckRequest(w.t, "POST", c.target, []byte("{}"))
	}
	ask(capture, "early", "").is(w.t, "a capture before there is anything to capture", 409, "invalid_state")
	ask(refund, "early", "").is(w.t, "a refund before there is anything to refund", 409, "invalid_state")
	d.charged("order-1", payments.StatusRequiresCapture, 0)
	ask(capture, "capture-1", `{"amount":9901}`).is(w.t, "a capture of more than is held", 422, "amount_exceeds_available")
	for range 2 {
		ask(capture, "capture-1", "")
	}
	ask(capture, "capture-1", `{"amount":1}`).is(w.t, "another capture under the key", 422, "idempotency_key_reused")
	ask(cancel, "capture-1", "").is(w.t, "a cancel under a capture's key", 422, "idempotency_key_reused")
	ask(cancel, "cancel-1", "").is(w.t, "a cancel beside a capture", 409, "invalid_state")
	d.charged("order-1", payments.StatusSucceeded, 9900)
	ask(refund, "refund-1", `{"amount":9901}`).is(w.t, "a refund of more than was taken", 422, "amount_exceeds_available")
	ask(refund, "refund-1", refund.body)
	ask(refund, "refund-1", "").is(w.t, "another refund under the key", 422, "idempotency_key_reused")
	for _, status := range schema.OperationStatuses() {
		if status == "processing" {
			continue
		}
		d.store.set("acme", "capture-1", payments.Status(status))
		d.store.refunded("acme", "refund-1", "re_1", payments.Status(status))
		ask(refund, "refund-1", refund.body, with("Prefer", "wait=0"))
		ask(capture, "capture-1", "", with("Prefer", "wait=0"))
		for _, c := range []described{list, show, operation} {
			if got := w.ask(d, c.route, c.request(with("Prefer", "wait=0"))); got.status != 200 {
				w.t.Errorf("%s: %d %s", c.route, got.status, got.body)
			}
		}
	}
	d.charged("order-2", payments.StatusRequiresCapture, 0)
	other := described{cancel.route, strings.Replace(cancel.target, payments.NewID("acme", "order-1").Hex(), payments.NewID("acme", "order-2").Hex(), 1), ""}
	ask(other, "cancel-2", "")
	d.store.set("acme", "cancel-2", payments.StatusSucceeded)
	ask(other, "cancel-2", "", with("Prefer", "wait=0"))
}

// otherwise asks for what the document does not name.
func (w *witness) otherwise() {
	w.t.Helper()
	d := newDesk(w.t, withDocs)
	for _, target := range []string{"/", "/v1", "/v1/nothing", "/docs/nothing", "/v1/payments/", "/v1/refunds"} {
		w.ask(d, "", newRequest("GET", target, ""))
		w.ask(d, "", newRequest("POST", target, "{}"))
		w.ask(d, "", newRequest("POST", target, "{}", with("Idempotency-Key", "k")))
	}
	for _, c := range operations() {
		w.ask(d, "", newRequest("DELETE", c.target, "", with("Idempotency-Key", "k")))
	}
}

// TestDocumentIsServed: what the API serves is what is committed.
func TestDocumentIsServed(t *testing.T) {
	t.Parallel()
	committed, err := os.ReadFile(filepath.Join("apidoc", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	recorder := httptest.NewRecorder()
	newDesk(t, withDocs).api.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/openapi.json", nil))
	if recorder.Code != 200 || !bytes.Equal(recorder.Body.Bytes(), committed) {
		t.Errorf("%d, %d bytes of %d", recorder.Code, recorder.Body.Len(), len(committed))
	}
}
