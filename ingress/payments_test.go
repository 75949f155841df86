package ingress

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
)

func TestCreatePayment(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	got := d.post("/v1/payments", "order-1", goodBody)
	if got.status != 202 || got.header.Get("Location") != "/v1/payments/pay_af5f4f1841e88ebcae502028d51c062c" || got.member("id") != "pay_af5f4f1841e88ebcae502028d51c062c" ||
		got.member("tenant_id") != "acme" || got.member("status") != "received" || got.member("amount") != 9900.0 || got.member("kind") != "charge" {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
	if r := d.store.admitted[0]; r.Claim || !r.Announce || r.Lane != payments.LaneInteractive || r.Refused != nil || r.ExistingOnly || r.Suspect != nil ||
		r.Intent.CaptureMethod != payments.CaptureAutomatic || !r.Intent.OffSession {
		t.Errorf("%+v", r)
	}
	want, err := schema.Marshal(document.Payment(d.store.rows[payments.BatchRef{TenantID: "acme", ID: payments.NewID("acme", "order-1")}]))
	if err != nil || !bytes.Equal(got.body, want) {
		t.Errorf("%s, want %s, %v", got.body, want, err)
	}
	d.store.set("acme", "order-1", payments.StatusSucceeded)
	again := d.post("/v1/payments", "order-1", goodBody)
	if again.status != 202 || again.header.Get("Idempotent-Replayed") != "true" || again.member("status") != "succeeded" || again.header.Get("Location") != got.header.Get("Location") {
		t.Errorf("%d %v %s", again.status, again.header, again.body)
	}
	if shown := d.get("/v1/payments/pay_af5f4f1841e88ebcae502028d51c062c"); shown.status != 200 || !bytes.Equal(shown.body, again.body) {
		t.Errorf("%d %s", shown.status, shown.body)
	}
}

// Field fault 31: what is said otherwise is the same request, what is asked otherwise is not, also while the first is running.
func TestSameKey(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first := d.post("/v1/payments", "order-1", `{"amount":9900,"currency":"usd","payment_method":"pm_1","metadata":{"a":"1","b":"2"}}`)
	if first.status != 202 {
		t.Fatalf("%s", first.body)
	}
	for _, body := range []string{
		`{"metadata":{"b":"2","a":"1"},"payment_method":"pm_1","currency":"usd","amount":9900}`,
		"\n{ \"amount\" : 9900 ,\t\"currency\": \"USD\", \"payment_method\":\"pm_1\", \"metadata\":{\"a\":\"1\",\"b\":\"2\"} }\n",
		`{"amount":9900,"currency":"usd","payment_method":"pm_1","metadata":{"a":"1","b":"2"},"kind":"charge","capture_method":"automatic","off_session":true,"tenant_id":"acme"}`,
		`{"amount":9900,"currency":"usd","payment_method":"pm_1","metadata":{"a":"\u0031","b":"2"},"expires_at":"2031-01-01T00:00:00Z"}`,
	} {
		if got := d.post("/v1/payments", "order-1", body); got.status != 202 || got.member("id") != first.member("id") || got.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	for body, differs := range map[string][]string{
		`{"amount":9901,"currency":"usd","payment_method":"pm_1","metadata":{"a":"1","b":"2"}}`:                                      {"amount"},
		`{"amount":9900,"currency":"eur","payment_method":"pm_2","metadata":{"a":"1","b":"2"}}`:                                      {"currency", "payment_method"},
		`{"amount":9900,"currency":"usd","payment_method":"pm_1","metadata":{"a":"1","b":"3"}}`:                                      {"metadata"},
		`{"amount":9900,"currency":"usd","payment_method":"pm_1","metadata":{"a":"1","b":"2"},"off_session":false}`:                  {"off_session"},
		`{"amount":-1,"currency":"zzz","payment_method":"pm_1","metadata":{"a":"1","b":"2"}}`:                                        {"amount", "currency"}, // before business validation
		`{"amount":9900,"currency":"usd","payment_method":"pm_1","metadata":{"a":"1","b":"2"},"kind":"refund","payment_id":"pay_1"}`: {"kind", "payment_id"},
	} {
		got := d.post("/v1/payments", "order-1", body)
		if got.is(t, body, 422, "idempotency_key_reused"); !slices.Equal(got.differs(), differs) {
			t.Errorf("%s: %v", body, got.differs())
		}
	}
	if d.store.stored() != 1 {
		t.Errorf("%d rows", d.store.stored())
	}
}

// Field fault 30: a key belongs to a tenant, and names one request whatever address it came through.
func TestScopeOfAKey(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	mine := d.post("/v1/payments", "order-1", strings.Replace(goodBody, "cus_1", "cus_of_acme", 1))
	theirs := d.post("/v1/payments", "order-1", strings.Replace(goodBody, "9900", "100", 1), as(globexSecret))
	if mine.status != 202 || theirs.status != 202 || mine.member("id") == theirs.member("id") || theirs.header.Get("Idempotent-Replayed") != "" || strings.Contains(string(theirs.body), "acme") {
		t.Errorf("%s %s", mine.body, theirs.body)
	}
	id := mine.member("id").(string)
	batch := d.post("/v1/batches", "run", goodBatch)
	for _, target := range []string{"/v1/payments/" + id, "/v1/payments/" + id + "/events", "/v1/batches/" + batch.member("id").(string)} {
		if got := d.get(target); got.status != 200 {
			t.Errorf("%s: %d", target, got.status)
		}
		d.get(target, as(globexSecret)).is(t, target, 404, "not_found")
	}
	if got := d.get("/v1/payments?idempotency_key=run::0", as(globexSecret)); string(got.body) != `{"data":[],"next_cursor":null}` {
		t.Errorf("%s", got.body)
	}
	got := d.post("/v1/batches", "order-1", goodBatch)
	if got.is(t, "a payment's key on a batch", 422, "idempotency_key_reused"); !slices.Contains(got.differs(), "kind") {
		t.Errorf("%s", got.body)
	}
	got = d.post("/v1/payments", "run", goodBody)
	if got.is(t, "a batch's key on a payment", 422, "idempotency_key_reused"); !slices.Contains(got.differs(), "kind") {
		t.Errorf("%s", got.body)
	}
}

// Whatever is no charge of the caller's is not there, and nothing tells why.
func TestIDs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.post("/v1/payments", "order-1", goodBody)
	batch := d.post("/v1/batches", "run", goodBatch).member("id").(string)
	payment := payments.NewID("acme", "order-1")
	var first string
	for _, target := range []string{
		"/v1/payments/" + batch, "/v1/payments/pay_" + strings.TrimPrefix(batch, "bat_"), "/v1/payments/ref_" + payment.Hex(), "/v1/payments/" + payment.Hex(),
		"/v1/payments/pay_" + strings.ToUpper(payment.Hex()), "/v1/payments/pay_0", "/v1/payments/" + payments.NewID("acme", "none").String(), "/v1/payments/%00", "/v1/payments/%ff",
		"/v1/payments/..%2f", "/v1/payments/" + payment.String() + "/nothing", "/v1/payments/" + payment.String() + "/", "/v1/payments/", "/v1/batches/" + payment.String(), "/v1/batches/bat_" + payment.Hex(),
		"/v1/batches/", "/v1", "/", "/v2/payments", "//v1/payments", "/v1//payments", "/v1/./payments", "/x/../v1/payments", "/v1/payments/" + batch + "/events", "/v1/payments/pay_x/events",
	} {
		got := d.get(target)
		if got.is(t, target, 404, "not_found"); first == "" {
			first = string(got.body)
		}
		if string(got.body) != first {
			t.Errorf("%s is told apart: %s", target, got.body)
		}
	}
}

// RFC 9457 problems for everything that can be wrong with a payment; nothing of it is stored, and its key stays free.
func TestInvalidPayments(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for body, field := range map[string]string{
		"": "Content-Type", "{": "body", "null": "body", "[]": "body", `{"amount":1}{}`: "body", `{"amount":9900,"amount":9900}`: "amount", `{"Amount":9900}`: "Amount", `{"amount":99.0}`: "amount",
		`{"amount":"9900"}`: "amount", `{"amount":null}`: "amount", `{"secret_sk_live_123456789":1}`: "body", `{"description":"a\u0000b"}`: "description", `{"metadata":{"k":"\ud800"}}`: "metadata.k",
		`{"currency":"usd","payment_method":"pm_1"}`:                                                       "amount",
		`{"amount":1,"currency":"zzz","payment_method":"pm_1"}`:                                            "currency",
		`{"amount":9900,"currency":"usd"}`:                                                                 "payment_method",
		`{"amount":9900,"currency":"usd","payment_method":"pm_1","kind":"capture","payment_id":"pay_1"}`:   "kind",
		`{"amount":9900,"currency":"usd","payment_method":"pm_1","metadata":{"oncepay_payment":"x"}}`:      "metadata",
		`{"amount":9900,"currency":"usd","payment_method":"pm_1","receipt_email":"nobody-at-example-com"}`: "receipt_email",
		"{\"amount\":9900,\"currency\":\"usd\",\"payment_method\":\"pm_\xff\"}":                            "payment_method",
	} {
		got := d.post("/v1/payments", "order-1", body)
		if got.is(t, body, 400, "invalid_request"); !slices.Contains(got.fields(), field) {
			t.Errorf("%s: %s", body, got.body)
		}
		for _, value := range []string{"zzz", "secret_sk", "nobody-at"} {
			if strings.Contains(string(got.body), value) {
				t.Errorf("the answer repeats the value: %s", got.body)
			}
		}
	}
	if d.store.stored() != 0 {
		t.Errorf("%d rows", d.store.stored())
	}
	if got := d.post("/v1/payments", "order-1", goodBody); got.status != 202 || got.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("the key is not free: %d %s", got.status, got.body)
	}
}

func TestMediaTypes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, lines := range [][]string{nil, {""}, {"text/plain"}, {"application/x-www-form-urlencoded"}, {"application/json-patch+json"}, {"application/json; charset=latin1"}, {"application/json", "application/json"}, {"application/json;"}} {
		got := d.post("/v1/payments", "order-1", goodBody, func(r *http.Request) { r.Header["Content-Type"] = lines })
		if len(lines) == 1 && lines[0] == "application/json;" {
			if got.status != 202 {
				t.Errorf("%q: %d %s", lines, got.status, got.body)
			}
			continue
		}
		if got.is(t, fmt.Sprint(lines), 400, "invalid_request"); !slices.Equal(got.fields(), []string{"Content-Type"}) {
			t.Errorf("%s", got.body)
		}
	}
	for _, line := range []string{"application/json; charset=utf-8", "Application/JSON;charset=\"UTF-8\""} {
		if got := d.post("/v1/payments", "order-1", goodBody, func(r *http.Request) { r.Header.Set("Content-Type", line) }); got.status != 202 {
			t.Errorf("%q: %d %s", line, got.status, got.body)
		}
	}
	got := d.post("/v1/payments", "order-1", goodBody, with("Content-Encoding", "gzip"))
	if got.is(t, "gzip", 400, "invalid_request"); !slices.Equal(got.fields(), []string{"Content-Encoding"}) {
		t.Errorf("%s", got.body)
	}
}

// A card number is refused wherever it stands, and neither answered nor logged nor stored.
func TestCardNumbers(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const card = "4242424242424242"
	body := func(more string) string { return strings.Replace(goodBody, "{", "{"+more+",", 1) }
	for name, got := range map[string]reply{
		"member":              d.post("/v1/payments", "k", body(`"description":"`+card+`"`)),
		"spaced":              d.post("/v1/payments", "k", body(`"description":"4242 4242 4242 4242"`)),
		"escaped":             d.post("/v1/payments", "k", body(`"description":"\u0034242\u0034242\u0034242\u0034242"`)),
		"unknown member":      d.post("/v1/payments", "k", `{"card":{"number":"`+card+`"}}`),
		"no JSON":             d.post("/v1/payments", "k", "number="+card),
		"metadata":            d.post("/v1/payments", "k", body(`"metadata":{"`+card+`":"x"}`)),
		"hidden in the bytes": d.post("/v1/payments", "k", body(`"description":"\f`+card+`abcdefa"`)), // as bytes a hex id of 24 digits
		"hidden in a batch":   d.post("/v1/batches", "k", strings.Replace(goodBatch, `"pm_2"`, `"pm_2","description":"\f`+card+`abcdefa"`, 1)),
		"batch":               d.post("/v1/batches", "k", strings.Replace(goodBatch, "pm_2", card, 1)),
		"batch's parent":      d.post("/v1/batches", "k", strings.Replace(goodBatch, "run-1", card, 1)),
		"key":                 d.post("/v1/payments", card, goodBody),
		"query":               d.get("/v1/payments?customer=" + card),
		"query, encoded":      d.get("/v1/payments?customer=4242+4242+4242%204242"),
		"query, all encoded":  d.get("/v1/payments?customer=%34242%34242%34242%34242"),
		"path":                d.get("/v1/payments/" + card),
		"path, encoded":       d.get("/v1/payments/%34242%34242%34242%34242/events"),
		"unknown path":        d.get("/" + card),
	} {
		got.is(t, name, 400, "card_number_detected")
		if strings.Contains(string(got.body), "4242") {
			t.Errorf("%s: %s", name, got.body)
		}
	}
	if d.store.stored() != 0 || strings.Contains(d.log.String(), "4242") {
		t.Errorf("%d rows, log %s", d.store.stored(), d.log)
	}
}

func TestStoreSaysNo(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.store.addKey("opk_orphan", "nobody", payments.Scopes()...)
	d.post("/v1/payments", "k", goodBody, as("opk_orphan")).is(t, "no tenant", 401, "unauthorized")
	d.post("/v1/batches", "k", goodBatch, as("opk_orphan")).is(t, "no tenant", 401, "unauthorized")
	id := payments.NewID("acme", "k").String()
	calls := map[string]func() reply{
		"admit": func() reply { return d.post("/v1/payments", "k", goodBody) }, "batch": func() reply { return d.post("/v1/batches", "k", goodBatch) },
		"find": func() reply { return d.get("/v1/payments/" + id) }, "list": func() reply { return d.get("/v1/payments") },
		"show_batch": func() reply { return d.get("/v1/batches/bat_" + id[4:]) }, "list_batches": func() reply { return d.get("/v1/batches") },
	}
	for verb, call := range calls {
		for want, err := range map[int]error{
			503: errAway, 500: payments.Errorf(payments.CodeInternal, "secret trouble"),
		} {
			d.store.setBefore(func(_ context.Context, v string) error {
				if v == verb {
					return err
				}
				return nil
			})
			got := call()
			if got.status != want || strings.Contains(string(got.body), "trouble") {
				t.Errorf("%s: %d %s", verb, got.status, got.body)
			}
			if want == 500 && !strings.Contains(d.log.String(), got.header.Get("Request-Id")) {
				t.Errorf("%s: the log does not name the request: %s", verb, d.log)
			}
		}
	}
	if n := strings.Count(d.log.String(), "are answered 503"); n != 1 {
		t.Errorf("the log says %d times that the store is away: %s", n, d.log)
	}
	// A client that has gone is no fault of anybody's.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.store.setBefore(func(ctx context.Context, v string) error {
		if v == "admit" {
			return fmt.Errorf("wrapped: %w", ctx.Err())
		}
		return nil
	})
	before := d.log.String()
	d.send(newRequest("POST", "/v1/payments", goodBody, with("Idempotency-Key", "k")).WithContext(ctx)).is(t, "gone", 503, "unavailable")
	if after := d.log.String(); after != before {
		t.Errorf("logged: %s", after[len(before):])
	}
}

func TestPanics(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.store.setBefore(func(_ context.Context, verb string) error {
		if verb == "admit" {
			panic("boom")
		}
		return nil
	})
	got := d.post("/v1/payments", "k", goodBody)
	if got.is(t, "panic", 500, "internal"); strings.Contains(string(got.body), "boom") || !strings.Contains(d.log.String(), "boom") || !strings.Contains(d.log.String(), got.header.Get("Request-Id")) {
		t.Errorf("%s; %s", got.body, d.log)
	}
	if len(d.api.inFlight) != 0 {
		t.Error("a place was not given back")
	}
	d.store.setBefore(func(_ context.Context, verb string) error { panic("in the look-up of a key") })
	d.clock.advance(keyFor * 2)
	d.get("/v1/payments").is(t, "panic", 500, "internal")
	d.store.setBefore(nil)
	if got := d.get("/v1/payments"); got.status != 200 {
		t.Errorf("afterwards: %d %s", got.status, got.body)
	}
}

// Half an answer must not look like a whole one: the connection is cut.
func TestPanicAfterTheAnswerBegan(t *testing.T) {
	t.Parallel()
	for _, value := range []any{"boom", http.ErrAbortHandler} {
		told := 0
		d := newDesk(t, func(c *Config) {
			c.Docs = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte("half"))
				panic(value)
			})
			c.Observer.Request = func(string, string, int, time.Duration) { told++ }
		})
		func() {
			defer func() {
				if got := recover(); got != http.ErrAbortHandler {
					t.Errorf("%v ended in %v", value, got)
				}
			}()
			d.api.Handler().ServeHTTP(httptest.NewRecorder(), newRequest("GET", "/docs", ""))
		}()
		if logged := strings.Contains(d.log.String(), "boom"); len(d.api.inFlight) != 0 || logged != (value == "boom") || told != 1 {
			t.Errorf("%v: %d in flight, logged: %v, told %d times", value, len(d.api.inFlight), logged, told)
		}
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(c *Config) {
		c.Docs = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			answering(w).send(200, mediaJSON, []byte("{}"))
		})
	})
	for target, allow := range map[string]string{
		"/v1/payments": "GET, HEAD, POST", "/v1/payments/pay_1": "GET, HEAD", "/v1/payments/pay_1/events": "GET, HEAD", "/v1/batches": "GET, HEAD, POST", "/v1/batches/bat_1": "GET, HEAD",
		"/docs": "GET, HEAD", "/docs/style.css": "GET, HEAD", "/openapi.json": "GET, HEAD",
	} {
		for _, method := range []string{"PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"} {
			got := d.send(newRequest(method, target, "", with("Idempotency-Key", "k")))
			if got.is(t, method+" "+target, 405, "method_not_allowed"); got.header.Get("Allow") != allow {
				t.Errorf("%s: %q", target, got.header.Get("Allow"))
			}
		}
	}
	for _, target := range []string{"/docs", "/docs/style.css", "/openapi.json"} {
		if got := d.get(target, func(r *http.Request) { r.Header.Del("Authorization") }); got.status != 200 {
			t.Errorf("%s: %d", target, got.status)
		}
	}
	if got := newDesk(t).get("/docs"); got.status != 404 {
		t.Errorf("without docs: %d", got.status)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.post("/v1/payments", "order-1", goodBody)
	target := "/v1/payments/" + payments.NewID("acme", "order-1").String() + "/events"
	if got := d.get(target); string(got.body) != `{"data":[],"next_cursor":null}` {
		t.Errorf("%s", got.body)
	}
	d.store.set("acme", "order-1", payments.StatusSucceeded)
	if got := d.get(target); got.status != 200 || string(got.body) != `{"data":[{"sequence":1,"at":"2030-01-02T03:04:05Z","type":"oncepay.payment.succeeded","status":"succeeded","reason":null}],"next_cursor":null}` {
		t.Errorf("%s", got.body)
	}
}

type fakeActions func(ctx context.Context, p payments.Payment) ([]byte, string, error)

func (f fakeActions) Action(ctx context.Context, p payments.Payment) ([]byte, string, error) {
	return f(ctx, p)
}

// next_action and client_secret are for the owning tenant's own look at the one payment, and for nobody's log.
func TestActions(t *testing.T) {
	t.Parallel()
	var next []byte
	var fail error
	d := newDesk(t, func(c *Config) {
		c.Actions = fakeActions(func(ctx context.Context, p payments.Payment) ([]byte, string, error) {
			if _, bounded := ctx.Deadline(); !bounded || p.TenantID != "acme" {
				t.Errorf("unbounded, or for %s", p.TenantID)
			}
			return next, "pi_1_secret_x", fail
		})
	})
	d.post("/v1/payments", "order-1", goodBody)
	target := "/v1/payments/" + payments.NewID("acme", "order-1").String()
	if got := d.get(target); strings.Contains(string(got.body), "client_secret") {
		t.Errorf("%s", got.body)
	}
	d.store.set("acme", "order-1", payments.StatusRequiresAction)
	next = []byte(`{"type":"use_stripe_sdk"}`)
	for name, got := range map[string]reply{"shown": d.get(target), "repeated": d.post("/v1/payments", "order-1", goodBody)} {
		action, _ := json.Marshal(got.member("next_action"))
		if string(action) != string(next) || got.member("client_secret") != "pi_1_secret_x" {
			t.Errorf("%s: %s", name, got.body)
		}
	}
	if got := d.get("/v1/payments"); strings.Contains(string(got.body), "secret") {
		t.Errorf("in a list: %s", got.body)
	}
	d.get(target, as(globexSecret)).is(t, "another tenant", 404, "not_found")
	for _, bad := range []string{"", "{", "no JSON"} {
		next = []byte(bad)
		if got := d.get(target); got.status != 200 || got.member("next_action") != nil {
			t.Errorf("%q: %d %s", bad, got.status, got.body)
		}
	}
	fail = payments.Errorf(payments.CodeUnavailable, "pi_1_secret_x did not come")
	if got := d.get(target); got.status != 200 || strings.Contains(string(got.body), "secret") || strings.Contains(d.log.String(), "secret_x") {
		t.Errorf("%d %s; %s", got.status, got.body, d.log)
	}
}
