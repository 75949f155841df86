package ingress

import (
	"net/http"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/payments"
)

// keyLines are Idempotency-Key headers, line by line, and the code that answers them on a payment.
var keyLines = map[string]struct {
	lines []string
	code  Code
}{
	"missing":                {nil, CodeIdempotencyRequired},
	"blank":                  {[]string{""}, CodeIdempotencyInvalid},
	"spaces":                 {[]string{"   "}, CodeIdempotencyInvalid},
	"space within":           {[]string{"a b"}, CodeIdempotencyInvalid},
	"tab within":             {[]string{"a\tb"}, CodeIdempotencyInvalid},
	"doubled":                {[]string{"order-1", "order-2"}, CodeIdempotencyInvalid},
	"doubled and equal":      {[]string{"order-1", "order-1"}, CodeIdempotencyInvalid},
	"listed":                 {[]string{"order-1, order-2"}, CodeIdempotencyInvalid},
	"overlong":               {[]string{strings.Repeat("a", 256)}, CodeIdempotencyInvalid},
	"overlong quoted":        {[]string{`"` + strings.Repeat("a", 256) + `"`}, CodeIdempotencyInvalid},
	"unicode":                {[]string{"pedido-ñ"}, CodeIdempotencyInvalid},
	"control":                {[]string{"a\x01b"}, CodeIdempotencyInvalid},
	"zero":                   {[]string{"a\x00b"}, CodeIdempotencyInvalid},
	"delete":                 {[]string{"a\x7fb"}, CodeIdempotencyInvalid},
	"empty quotes":           {[]string{`""`}, CodeIdempotencyInvalid},
	"open quote":             {[]string{`"order-1`}, CodeIdempotencyInvalid},
	"parameter after quotes": {[]string{`"order-1";a=b`}, CodeIdempotencyInvalid},
	"bad escape":             {[]string{`"order\-1"`}, CodeIdempotencyInvalid},
	"reserved":               {[]string{"run::7"}, CodeIdempotencyReserved},
	"reserved in quotes":     {[]string{`"run::7"`}, CodeIdempotencyReserved},
	"a card number":          {[]string{"4242424242424242"}, CodeCardNumber},
	"a card in groups":       {[]string{`"4242-4242-4242-4242"`}, CodeCardNumber},
}

func TestUnusableKeys(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, c := range keyLines {
		for _, target := range []string{"/v1/payments", "/v1/batches"} {
			for _, body := range []string{goodBody, goodBatch, ""} {
				got := d.send(newRequest("POST", target, body, func(r *http.Request) { r.Header["Idempotency-Key"] = c.lines }))
				got.is(t, name+" on "+target, 400, string(c.code))
				for _, line := range c.lines {
					if len(line) > 3 && strings.Contains(string(got.body), strings.Trim(line, `"`)) {
						t.Errorf("%s: the answer repeats the key: %s", name, got.body)
					}
				}
			}
		}
	}
	if n := d.store.stored(); n != 0 || d.store.count("admit")+d.store.count("batch") != 0 {
		t.Errorf("%d rows", n)
	}
}

// The middleware stands before every address and method that could change something, whether there is anything or not, and before the API key.
func TestEveryWriteNeedsAKey(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "MERGE"} {
		for _, target := range []string{"/v1/payments", "/v1/payments/pay_0", "/v1/payments/pay_0/refunds", "/v1/refunds/ref_0", "/v1/batches", "/nowhere", "/"} {
			d.send(newRequest(method, target, "", func(r *http.Request) { r.Header.Del("Authorization") })).is(t, method+" "+target, 400, "idempotency_required")
		}
	}
	d.send(newRequest("POST", "/webhooks/stripe", "{}", func(r *http.Request) {
		r.Header.Del("Authorization")
		r.Header.Del("Idempotency-Key")
	})).is(t, "Stripe's event", 404, "not_found")
	for _, target := range []string{
		"/webhooks", "/webhooks/", "/webhooks/stripe/", "/webhooks/other", "/webhooks//stripe", "/v1/../webhooks/stripe",
		"/v1//payments", "//v1/payments", "/v1/./payments", "/x/../v1/payments", "/v1/payments/..%2f",
	} {
		d.send(newRequest("POST", target, "{}", func(r *http.Request) { r.Header.Del("Idempotency-Key") })).is(t, target, 400, "idempotency_required")
		d.send(newRequest("POST", target, "{}", func(r *http.Request) { r.Header.Set("Idempotency-Key", "order-1") })).is(t, target+" with a key", 404, "not_found")
	}
	for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
		if got := d.send(newRequest(method, "/nowhere", "")); got.status != 404 {
			t.Errorf("%s: %d", method, got.status)
		}
	}
}

// What is wrong with a request is said in one order: its Idempotency-Key, its API key, what that may do, its body. CONTRACT has no exception from
// the 400 for callers who are nobody; the API key is not even looked up for it.
func TestOrderOfRefusals(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.store.addKey("opk_reader", "acme", payments.ScopePaymentsRead)
	nobody := func(r *http.Request) { r.Header.Del("Authorization") }
	for _, target := range []string{"/v1/payments", "/v1/batches"} {
		for name, c := range map[string]struct {
			key    string
			caller func(*http.Request)
			status int
			code   string
		}{
			"neither key":                {"", nobody, 400, "idempotency_required"},
			"no key, and a wrong caller": {"", as("opk_nosuch"), 400, "idempotency_required"},
			"no key, and a reader":       {"", as("opk_reader"), 400, "idempotency_required"},
			"an unusable key, nobody":    {"a b", nobody, 400, "idempotency_key_invalid"},
			"a reserved key, nobody":     {"a::1", nobody, 400, "idempotency_key_reserved"},
			"a key, and nobody":          {"k", nobody, 401, "unauthorized"},
			"a key, and a wrong caller":  {"k", as("opk_nosuch"), 401, "unauthorized"},
			"a key, and a reader":        {"k", as("opk_reader"), 403, "forbidden"},
			"a key, and a body of none":  {"k", as(acmeSecret), 400, "invalid_request"},
		} {
			before := d.store.count("key")
			got := d.send(newRequest("POST", target, "{", c.caller, func(r *http.Request) {
				if r.Header.Del("Idempotency-Key"); c.key != "" {
					r.Header.Set("Idempotency-Key", c.key)
				}
			}))
			got.is(t, name+" on "+target, c.status, c.code)
			if c.status == 400 && c.code != "invalid_request" && d.store.count("key") != before {
				t.Errorf("%s on %s: the API key was looked up", name, target)
			}
		}
	}
	if n := d.store.stored(); n != 0 {
		t.Errorf("%d rows", n)
	}
}

// A route that somebody mounts without what stands before it is as safe.
func TestRoutesAloneNeedAKey(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, rt := range routes {
		if rt.Method != "POST" {
			continue
		}
		alone := d.api.serve(rt)
		for name, c := range keyLines {
			got := send(t, alone, newRequest("POST", rt.Path, goodBody, func(r *http.Request) { r.Header["Idempotency-Key"] = c.lines }))
			got.is(t, name+" on "+rt.Path, 400, string(c.code))
		}
	}
	if n := d.store.stored(); n != 0 {
		t.Errorf("%d rows", n)
	}
	d.store.setBefore(nil)
	if got := send(t, d.api.serve(routes[0]), newRequest("POST", "/v1/payments", goodBody, with("Idempotency-Key", "order-1"))); got.status != 202 {
		t.Errorf("with a key: %d %s", got.status, got.body)
	}
}

func TestUsableKeys(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for line, key := range map[string]string{
		"order-1": "order-1", `"order-1"`: "order-1", " order-1 ": "", `"a\"b"`: `a"b`, `"a\\b"`: `a\b`, `a"b`: `a"b`,
		"a:b": "a:b", "!~": "!~", strings.Repeat("k", 255): strings.Repeat("k", 255), `"` + strings.Repeat("q", 255) + `"`: strings.Repeat("q", 255),
	} {
		got := d.post("/v1/payments", line, goodBody)
		if key == "" { // net/http takes spaces around a value off; here nobody has
			got.is(t, line, 400, "idempotency_key_invalid")
			continue
		}
		id := payments.NewID("acme", key).String()
		if got.status != 202 || got.member("id") != id || got.member("idempotency_key") != key || got.header.Get("Location") != "/v1/payments/"+id {
			t.Errorf("%q: %d %s", line, got.status, got.body)
		}
	}
}

// The bare and the quoted form name one key.
func TestQuotedKeyIsTheSameKey(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first, second := d.post("/v1/payments", "order-1", goodBody), d.post("/v1/payments", `"order-1"`, goodBody)
	if first.status != 202 || second.status != 202 || first.member("id") != second.member("id") || second.header.Get("Idempotent-Replayed") != "true" || first.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("%s %s", first.body, second.body)
	}
	d.post("/v1/payments", "ORDER-1", goodBody)
	if n := d.store.stored(); n != 2 {
		t.Errorf("%d rows: keys are case-sensitive", n)
	}
}

func TestBodyRepeatsKeyAndTenant(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	body := func(more string) string { return strings.Replace(goodBody, "{", "{"+more+",", 1) }
	if got := d.post("/v1/payments", "order-1", body(`"idempotency_key":"order-1","tenant_id":"acme"`)); got.status != 202 {
		t.Errorf("agreeing: %d %s", got.status, got.body)
	}
	d.post("/v1/payments", "order-2", body(`"idempotency_key":"order-1"`)).is(t, "another key", 400, "idempotency_key_invalid")
	d.post("/v1/payments", "order-2", body(`"idempotency_key":""`)).is(t, "an empty key", 400, "idempotency_key_invalid")
	got := d.post("/v1/payments", "order-2", body(`"tenant_id":"globex"`))
	if got.is(t, "another tenant", 400, "invalid_request"); len(got.fields()) != 1 || got.fields()[0] != "tenant_id" {
		t.Errorf("%s", got.body)
	}
	batch := strings.Replace(goodBatch, `{"amount":200,`, `{"tenant_id":"globex","amount":200,`, 1)
	if got := d.post("/v1/batches", "run", batch); got.status != 400 || len(got.fields()) != 1 || got.fields()[0] != "payments[1].tenant_id" {
		t.Errorf("%s", got.body)
	}
	d.post("/v1/batches", "run", strings.Replace(goodBatch, "{", `{"idempotency_key":"other",`, 1)).is(t, "another batch key", 400, "idempotency_key_invalid")
	if n := d.store.stored(); n != 1 {
		t.Errorf("%d rows", n)
	}
}
