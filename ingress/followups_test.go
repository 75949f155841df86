package ingress

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// ask sends a request about a payment; what is one of the paths below it.
func (d *desk) ask(charge, what, key, body string, change ...func(*http.Request)) reply {
	d.t.Helper()
	return d.post("/v1/payments/"+charge+"/"+what, key, body, change...)
}

// unstored wants the verdict to have left nothing behind, and the key to be free for a payment.
func (d *desk) unstored(key string, rows int) {
	d.t.Helper()
	if n := d.store.stored(); n != rows {
		d.t.Errorf("%d rows, want %d", n, rows)
	}
	if got := d.post("/v1/payments", key, goodBody); got.status != 202 || got.header.Get("Idempotent-Replayed") != "" {
		d.t.Errorf("the key %s is not free: %d %s", key, got.status, got.body)
	}
}

func TestCreateRefund(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	charge := d.charged("order-1", payments.StatusSucceeded, 9900)
	id := payments.NewID("acme", "refund-1").Format(payments.KindRefund)
	got := d.ask(charge, "refunds", "refund-1", `{"amount":2500,"reason":"requested_by_customer","metadata":{"rma":"7"}}`)
	if got.status != 202 || got.header.Get("Location") != "/v1/refunds/"+id || got.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
	for name, want := range map[string]any{
		"id": id, "kind": "refund", "payment_id": charge, "tenant_id": "acme", "idempotency_key": "refund-1", "status": "received", "amount": 2500.0,
		"currency": "usd", "reason": "requested_by_customer", "stripe_refund": nil, "status_reason": nil,
	} {
		if got.member(name) != want {
			t.Errorf("%s is %v, want %v", name, got.member(name), want)
		}
	}
	if r := d.store.asked[0]; !r.Announce || r.Lane != payments.LaneInteractive || r.Refused != nil || r.ExistingOnly || r.Suspect != nil ||
		r.Intent.Kind != payments.KindRefund || r.Intent.All || r.Intent.OffSession || r.Intent.CaptureMethod != "" || r.Intent.Metadata["rma"] != "7" {
		t.Errorf("%+v", r)
	}
	d.store.refunded("acme", "refund-1", "re_1", payments.StatusSucceeded)
	again := d.ask(charge, "refunds", `"refund-1"`, `{"metadata":{"rma":"7"},"reason":"requested_by_customer", "amount":2500}`)
	if again.status != 202 || again.header.Get("Idempotent-Replayed") != "true" || again.member("status") != "succeeded" || again.member("stripe_refund") != "re_1" ||
		again.header.Get("Location") != got.header.Get("Location") {
		t.Errorf("%d %v %s", again.status, again.header, again.body)
	}
	if shown := d.get("/v1/refunds/" + id); shown.status != 200 || !bytes.Equal(shown.body, again.body) {
		t.Errorf("%d %s", shown.status, shown.body)
	}
	if list := d.get("/v1/payments/" + charge + "/refunds"); list.status != 200 || string(list.body) != `{"data":[`+string(again.body)+`],"next_cursor":null}` {
		t.Errorf("%d %s", list.status, list.body)
	}
}

func TestCreateCaptureAndCancel(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for what, body := range map[string]string{"capture": `{"amount":5000}`, "cancel": `{"reason":"abandoned"}`} {
		charge := d.charged("order-"+what, payments.StatusRequiresCapture, 0)
		id := payments.NewID("acme", what).Format(payments.Kind(what))
		got := d.ask(charge, what, what, body)
		if got.status != 202 || got.header.Get("Location") != "/v1/operations/"+id || got.member("id") != id || got.member("kind") != what || got.member("payment_id") != charge ||
			!strings.HasPrefix(id, "op_") {
			t.Errorf("%s: %d %v %s", what, got.status, got.header, got.body)
		}
		if amount := got.member("amount"); amount != map[string]float64{"capture": 5000}[what] {
			t.Errorf("%s: %v", what, amount)
		}
		if shown := d.get(got.header.Get("Location")); shown.status != 200 || !bytes.Equal(shown.body, got.body) {
			t.Errorf("%s: %d %s", what, shown.status, shown.body)
		}
		if list := d.get("/v1/payments/" + charge + "/refunds"); string(list.body) != `{"data":[],"next_cursor":null}` {
			t.Errorf("%s: %s", what, list.body)
		}
	}
}

// A body that is left out, blank or {} is one request: all that there is.
func TestFollowUpsWithoutABody(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for what, status := range map[string]payments.Status{"capture": payments.StatusRequiresCapture, "cancel": payments.StatusRequiresCapture, "refunds": payments.StatusSucceeded} {
		charge := d.charged("order-"+what, status, map[string]int64{"refunds": 9900}[what])
		amount := 9900.0
		if what == "cancel" {
			amount = 0
		}
		for i, send := range []func() reply{
			func() reply { return d.ask(charge, what, what+"-1", "") },
			func() reply { return d.ask(charge, what, what+"-1", "{}") },
			func() reply { return d.ask(charge, what, what+"-1", "\n{ }\t") },
			func() reply {
				return d.ask(charge, what, what+"-1", "", with("Content-Type", "application/x-www-form-urlencoded")) // as curl -d ''
			},
			func() reply { // in chunks, none of them
				return d.ask(charge, what, what+"-1", "{}", func(r *http.Request) { r.Body, r.ContentLength = http.NoBody, -1 })
			},
		} {
			got := send()
			if got.status != 202 || got.member("amount") != amount || (got.header.Get("Idempotent-Replayed") == "true") != (i > 0) {
				t.Errorf("%s %d: %d %s", what, i, got.status, got.body)
			}
		}
		if charge := d.store.asked[len(d.store.asked)-1].Intent; charge.All != (what != "cancel") || charge.Amount != 0 {
			t.Errorf("%s: %+v", what, charge)
		}
	}
}

// followUpBodies are bodies that are not valid, and the field that each is refused for, by the last part of the path.
var followUpBodies = map[string]map[string]string{
	"capture": {`{"amount":0}`: "amount", `{"amount":-1}`: "amount", `{"reason":"duplicate"}`: "reason", `{"metadata":{}}`: "metadata"},
	"cancel": {
		`{"amount":100}`: "amount", `{"reason":"Duplicate"}`: "reason", `{"reason":"expired_uncaptured_charge"}`: "reason", `{"reason":1}`: "reason",
		`{"reason":null}`: "reason", `{"metadata":{"a":"1"}}`: "metadata",
	},
	"refunds": {
		`{"amount":0}`: "amount", `{"amount":-5}`: "amount", `{"reason":"abandoned"}`: "reason", `{"reason":"fraud"}`: "reason", `{"reason":["duplicate"]}`: "reason",
		`{"metadata":{"oncepay_payment":"x"}}`: "metadata", `{"metadata":{"a":1}}`: "metadata.a", `{"metadata":{"a":null}}`: "metadata.a", `{"metadata":null}`: "metadata",
		`{"metadata":{"a":"` + strings.Repeat("x", 501) + `"}}`: "metadata.a", `{"metadata":{"` + strings.Repeat("n", 41) + `":"x"}}`: "metadata",
		`{"metadata":{"a[0]":"x"}}`: "metadata",
	},
}

// Whatever is wrong with a body is named, nothing of it is stored, and its key stays free.
func TestInvalidFollowUps(t *testing.T) {
	t.Parallel()
	for what, bodies := range followUpBodies {
		d := newDesk(t)
		charge := d.charged("order-1", map[string]payments.Status{"refunds": payments.StatusSucceeded}[what], 9900)
		if what != "refunds" {
			charge = d.charged("order-1", payments.StatusRequiresCapture, 0)
		}
		all := map[string]string{
			"{": "body", "null": "body", "[]": "body", `"x"`: "body", "{}{}": "body", "amount=100": "body", " ": "body", `{"secret_sk_live_123456789":1}`: "body", "\xef\xbb\xbf{}": "body",
			`{"currency":"usd"}`: "currency", `{"payment_id":"` + charge + `"}`: "payment_id", `{"kind":"refund"}`: "kind", `{"idempotency_key":"k"}`: "idempotency_key",
			`{"tenant_id":"acme"}`: "tenant_id", `{"expires_at":"2030-01-31T12:00:00Z"}`: "expires_at",
		}
		if what != "cancel" {
			for _, wrong := range []string{`"100"`, "1.5", "1e2", "100.0", "null", "true", "[100]", "9223372036854775808", "-0"} {
				all[`{"amount":`+wrong+`}`] = "amount"
			}
			all[`{"amount":100,"amount":100}`], all[`{"Amount":100}`] = "amount", "Amount"
		}
		for body, field := range bodies {
			all[body] = field
		}
		rows := d.store.stored()
		for body, field := range all {
			got := d.ask(charge, what, "key-1", body)
			if got.is(t, what+" "+body, 400, "invalid_request"); !slices.Contains(got.fields(), field) {
				t.Errorf("%s %s: %s", what, body, got.body)
			}
			for _, value := range []string{"fraud\"", "Duplicate", "secret_sk", "expired_"} {
				if strings.Contains(string(got.body), value) {
					t.Errorf("the answer repeats the value: %s", got.body)
				}
			}
		}
		got := d.ask(charge, what, "key-1", "{}", with("Content-Encoding", "gzip"))
		got.is(t, "gzip", 400, "invalid_request")
		d.ask(charge, what, "key-1", strings.Repeat(" ", PaymentBodyMax)+"{}").is(t, what, 413, "payload_too_large")
		got = d.post("/v1/payments/"+charge+"/"+what, "key-1", "{}", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") })
		got.is(t, "no JSON", 400, "invalid_request")
		got = d.post("/v1/payments/"+charge+"/"+what+"?amount=1", "key-1", "{}")
		got.is(t, "a parameter", 400, "invalid_request")
		d.unstored("key-1", rows)
	}
}

// What the payment does not allow is 409 or 422, says why, stores nothing, and is allowed under the same key once the payment does.
func TestRefusedFollowUpsKeepTheirKey(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	charge := d.charged("order-1", payments.StatusReceived, 0)
	rows := d.store.stored()
	d.ask(charge, "capture", "capture-1", "").is(t, "nothing is held", 409, "invalid_state")
	d.ask(charge, "refunds", "refund-1", "").is(t, "nothing is taken", 409, "invalid_state")
	d.charged("order-1", payments.StatusRequiresCapture, 0)
	d.ask(charge, "capture", "capture-1", `{"amount":9901}`).is(t, "more than is held", 422, "amount_exceeds_available")
	d.ask(charge, "refunds", "refund-1", "").is(t, "nothing is taken", 409, "invalid_state")
	if n := d.store.stored(); n != rows {
		t.Errorf("%d rows, want %d", n, rows)
	}
	if got := d.ask(charge, "capture", "capture-1", `{"amount":9000}`); got.status != 202 || got.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("the key of a refused capture: %d %s", got.status, got.body)
	}
	got := d.ask(charge, "cancel", "cancel-1", "")
	if got.is(t, "a capture is under way", 409, "invalid_state"); !strings.Contains(got.member("detail").(string), "capture") {
		t.Errorf("%s", got.body)
	}
	d.store.set("acme", "capture-1", payments.StatusSucceeded)
	d.charged("order-1", payments.StatusSucceeded, 9000)
	got = d.ask(charge, "cancel", "cancel-1", "")
	if got.is(t, "it was taken", 409, "invalid_state"); !strings.Contains(got.member("detail").(string), "refund") {
		t.Errorf("it does not name the remedy: %s", got.body)
	}
	if got := d.ask(charge, "refunds", "refund-1", `{"amount":6000}`); got.status != 202 || got.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("the key of a refused refund: %d %s", got.status, got.body)
	}
	got = d.ask(charge, "refunds", "refund-2", `{"amount":3001}`)
	if got.is(t, "more than is left", 422, "amount_exceeds_available"); !strings.Contains(got.member("detail").(string), "3000 (30.00 USD)") {
		t.Errorf("it does not say how much is left: %s", got.body)
	}
	if got := d.ask(charge, "refunds", "refund-2", ""); got.status != 202 || got.member("amount") != 3000.0 {
		t.Errorf("all that is left: %d %s", got.status, got.body)
	}
	d.ask(charge, "refunds", "refund-3", "").is(t, "nothing is left", 422, "amount_exceeds_available")
	d.store.set("acme", "refund-1", payments.StatusFailed) // its amount is free again
	if got := d.ask(charge, "refunds", "refund-3", ""); got.status != 202 || got.member("amount") != 6000.0 {
		t.Errorf("what a failed refund has left: %d %s", got.status, got.body)
	}
	if got := d.ask(charge, "refunds", "refund-2", ""); got.status != 202 || got.header.Get("Idempotent-Replayed") != "true" || got.member("amount") != 3000.0 {
		t.Errorf("a repeat of what took the rest: %d %s", got.status, got.body)
	}
}

// An amount that Stripe does not take in the payment's currency is said at once, and under the same key the right one is accepted.
func TestFollowUpAmountsOfTheCurrency(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	charge := d.charged("order-1", payments.StatusSucceeded, 9900)
	at := payments.BatchRef{TenantID: "acme", ID: payments.NewID("acme", "order-1")}
	d.store.mu.Lock()
	p := d.store.rows[at]
	p.Currency = "kwd"
	d.store.rows[at] = p
	d.store.mu.Unlock()
	rows := d.store.stored()
	got := d.ask(charge, "refunds", "refund-1", `{"amount":105}`)
	if got.is(t, "no such amount", 400, "invalid_request"); !slices.Equal(got.fields(), []string{"amount"}) || !strings.Contains(string(got.body), "must end in 0") || d.store.stored() != rows {
		t.Errorf("%d rows; %s", d.store.stored(), got.body)
	}
	if got := d.ask(charge, "refunds", "refund-1", `{"amount":110}`); got.status != 202 {
		t.Errorf("under the same key: %s", got.body)
	}
}

// A key names one request, whatever it asks for, of which payment and through which address; what differs is named before anything else is said.
func TestKeysOfFollowUps(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	charge, other := d.charged("order-1", payments.StatusSucceeded, 9900), d.charged("order-2", payments.StatusSucceeded, 9900)
	if got := d.ask(charge, "refunds", "key-1", `{"amount":100,"reason":"duplicate"}`); got.status != 202 {
		t.Fatalf("%s", got.body)
	}
	rows := d.store.stored()
	for _, c := range []struct {
		name    string
		got     reply
		differs []string
	}{
		{"amount", d.ask(charge, "refunds", "key-1", `{"amount":101,"reason":"duplicate"}`), []string{"amount"}},
		{"no amount", d.ask(charge, "refunds", "key-1", `{"reason":"duplicate"}`), []string{"amount"}},
		{"reason", d.ask(charge, "refunds", "key-1", `{"amount":100}`), []string{"reason"}},
		{"metadata", d.ask(charge, "refunds", "key-1", `{"amount":100,"reason":"duplicate","metadata":{"a":"1"}}`), []string{"metadata"}},
		{"payment", d.ask(other, "refunds", "key-1", `{"amount":100,"reason":"duplicate"}`), []string{"payment_id"}},
		{"no payment", d.ask(payments.NewID("acme", "none").String(), "refunds", "key-1", `{"amount":100,"reason":"duplicate"}`), []string{"payment_id"}},
		{"invalid too", d.ask(charge, "refunds", "key-1", `{"amount":-1,"reason":"duplicate"}`), []string{"amount"}},
		{"kind", d.ask(charge, "capture", "key-1", `{"amount":100}`), []string{"kind", "reason"}},
		{"a cancel", d.ask(charge, "cancel", "key-1", `{"reason":"duplicate"}`), []string{"kind", "amount"}},
		{"a charge's key", d.ask(charge, "refunds", "order-2", ""), nil},
		{"a payment under it", d.post("/v1/payments", "key-1", goodBody), nil},
		{"a batch under it", d.post("/v1/batches", "key-1", goodBatch), nil},
	} {
		c.got.is(t, c.name, 422, "idempotency_key_reused")
		if c.differs != nil && !slices.Equal(c.got.differs(), c.differs) || !slices.Contains(c.got.differs(), "kind") && c.differs == nil {
			t.Errorf("%s: %v, want %v", c.name, c.got.differs(), c.differs)
		}
	}
	if n := d.store.stored(); n != rows {
		t.Errorf("%d rows, want %d", n, rows)
	}
	for name, c := range keyLines {
		for _, what := range []string{"capture", "cancel", "refunds"} {
			for _, body := range []string{"{}", ""} {
				got := d.send(newRequest("POST", "/v1/payments/"+charge+"/"+what, body, func(r *http.Request) { r.Header["Idempotency-Key"] = c.lines }))
				got.is(t, name+" on "+what, 400, string(c.code))
			}
		}
	}
	// Another tenant's key of the same name is another key.
	if got := d.ask(charge, "refunds", "key-1", "", as(globexSecret)); got.status != 404 || d.store.stored() != rows {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// Whatever is no charge of the caller's is not there, and whatever is no refund or operation of his is not either; nothing tells why.
func TestIDsOfFollowUps(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	charge := d.charged("order-1", payments.StatusSucceeded, 9900)
	held := d.charged("order-2", payments.StatusRequiresCapture, 0)
	refund := d.ask(charge, "refunds", "refund-1", "").member("id").(string)
	capture := d.ask(held, "capture", "capture-1", "").member("id").(string)
	batch := d.post("/v1/batches", "run", goodBatch).member("id").(string)
	hex := strings.TrimPrefix(charge, "pay_")
	rows := d.store.stored()
	for _, id := range []string{
		refund, capture, batch, "op_" + hex, "ref_" + hex, hex, "PAY_" + hex, "pay_" + strings.ToUpper(hex), "pay_" + strings.TrimPrefix(refund, "ref_"),
		"pay_" + strings.TrimPrefix(capture, "op_"), "pay_" + strings.TrimPrefix(batch, "bat_"), payments.NewID("acme", "none").String(), "pay_", "pay_0", "%00", "%ff", "pay_" + hex + "0",
		payments.NewID("globex", "order-1").String(),
	} {
		for _, what := range []string{"capture", "cancel", "refunds"} {
			d.ask(id, what, "key-1", "").is(t, "POST "+id+"/"+what, 404, "not_found")
		}
		d.get("/v1/payments/"+id+"/refunds").is(t, "GET "+id+"/refunds", 404, "not_found")
	}
	for _, target := range []string{
		"/v1/refunds/" + capture, "/v1/refunds/ref_" + strings.TrimPrefix(capture, "op_"), "/v1/refunds/" + charge, "/v1/refunds/ref_" + hex, "/v1/refunds/ref_0", "/v1/refunds/" + strings.ToUpper(refund),
		"/v1/operations/" + refund, "/v1/operations/op_" + strings.TrimPrefix(refund, "ref_"), "/v1/operations/op_" + hex, "/v1/operations/" + strings.ToUpper(capture), "/v1/operations/" + charge,
		"/v1/payments/" + refund, "/v1/payments/" + capture, "/v1/payments/pay_" + strings.TrimPrefix(refund, "ref_"), "/v1/refunds", "/v1/operations", "/v1/refunds/", "/v1/refunds/" + refund + "/x",
		"/v1/payments/" + charge + "/refunds/" + refund,
	} {
		d.get(target).is(t, target, 404, "not_found")
	}
	theirs := as(globexSecret)
	for _, target := range []string{"/v1/refunds/" + refund, "/v1/operations/" + capture, "/v1/payments/" + charge + "/refunds"} {
		if got := d.get(target); got.status != 200 {
			t.Errorf("%s: %d", target, got.status)
		}
		d.get(target, theirs).is(t, target, 404, "not_found")
	}
	for _, what := range []string{"capture", "cancel", "refunds"} {
		d.ask(charge, what, "key-1", "", theirs).is(t, what, 404, "not_found")
	}
	d.unstored("key-1", rows)
}

// A card number is refused wherever it stands, and neither answered nor logged nor stored.
func TestCardNumbersInFollowUps(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	charge := d.charged("order-1", payments.StatusSucceeded, 9900)
	rows := d.store.stored()
	const card = "4242424242424242"
	for name, got := range map[string]reply{
		"metadata":            d.ask(charge, "refunds", "k", `{"metadata":{"a":"`+card+`"}}`),
		"metadata's name":     d.ask(charge, "refunds", "k", `{"metadata":{"`+card+`":"a"}}`),
		"spaced":              d.ask(charge, "refunds", "k", `{"metadata":{"a":"4242 4242 4242 4242"}}`),
		"escaped":             d.ask(charge, "refunds", "k", `{"metadata":{"a":"\u0034242\u0034242\u0034242\u0034242"}}`),
		"hidden in the bytes": d.ask(charge, "refunds", "k", `{"metadata":{"a":"\f`+card+`abcdefa"}}`),
		"reason":              d.ask(charge, "cancel", "k", `{"reason":"`+card+`"}`),
		"hidden in a reason":  d.ask(charge, "cancel", "k", `{"reason":"\f`+card+`abcdefa"}`),
		"unknown member":      d.ask(charge, "capture", "k", `{"card":"`+card+`"}`),
		"key":                 d.ask(charge, "refunds", card, ""),
		"path":                d.ask(card, "refunds", "k", ""),
	} {
		got.is(t, name, 400, "card_number_detected")
		if strings.Contains(string(got.body), "4242") {
			t.Errorf("%s: %s", name, got.body)
		}
	}
	if d.store.stored() != rows || strings.Contains(d.log.String(), "4242") {
		t.Errorf("%d rows; %s", d.store.stored(), d.log)
	}
}

// Prefer: wait answers 200 once the operation has ended or is pending at Stripe, with what Stripe calls it by then.
func TestFollowUpsAreWaitedFor(t *testing.T) {
	t.Parallel()
	for becomes, status := range map[payments.Status]int{
		payments.StatusSucceeded: 200, payments.StatusFailed: 200, payments.StatusRejected: 200, payments.StatusCanceled: 200, payments.StatusPending: 200,
		payments.StatusWaiting: 202, payments.StatusUnknown: 202, payments.StatusNeedsReview: 202, payments.StatusStalled: 202,
	} {
		t.Run(string(becomes), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d, stop := waitDesk(t)
				defer stop()
				charge := d.charged("order-1", payments.StatusSucceeded, 9900)
				go func() {
					time.Sleep(time.Second)
					d.store.refunded("acme", "refund-1", "re_1", becomes)
				}()
				begun := time.Now()
				got := d.ask(charge, "refunds", "refund-1", "", with("Prefer", "wait=3"))
				if got.status != status || got.member("status") != string(becomes) || got.member("stripe_refund") != "re_1" || got.header.Get("Preference-Applied") != "wait=3" {
					t.Errorf("%d %v %s", got.status, got.header, got.body)
				}
				if took := time.Since(begun); status == 200 && took > 1100*time.Millisecond || status == 202 && took != 3*time.Second {
					t.Errorf("it took %v", took)
				}
				if again := d.ask(charge, "refunds", "refund-1", "", with("Prefer", "wait=2")); again.status != status || again.header.Get("Idempotent-Replayed") != "true" {
					t.Errorf("repeated: %d", again.status)
				}
				if shown := d.get(got.header.Get("Location"), with("Prefer", "wait=1")); shown.status != 200 || shown.header.Get("Preference-Applied") != "wait=1" {
					t.Errorf("shown: %d %v", shown.status, shown.header)
				}
				if plain := d.ask(charge, "refunds", "refund-1", ""); plain.status != 202 || plain.header.Get("Preference-Applied") != "" {
					t.Errorf("without the preference: %d", plain.status)
				}
			})
		})
	}
}

// PostgreSQL away at the end of a wait: what was accepted is answered as accepted, as it stood then; whoever only reads is told. No refund is shown as made
// without its name, and what needs none is not read again.
func TestFollowUpMovedWhileAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, stop := waitDesk(t)
		defer stop()
		charge := d.charged("order-1", payments.StatusSucceeded, 9900)
		d.store.setBefore(func(_ context.Context, verb string) error {
			if verb == "find_follow_up" {
				return errAway
			}
			return nil
		})
		go func() {
			time.Sleep(time.Second)
			d.store.refunded("acme", "refund-1", "re_1", payments.StatusSucceeded)
		}()
		got := d.ask(charge, "refunds", "refund-1", "", with("Prefer", "wait=3"))
		if got.status != 202 || got.member("status") != "received" || got.member("stripe_refund") != nil || got.header.Get("Location") == "" {
			t.Errorf("away: %d %s", got.status, got.body)
		}
		d.get(got.header.Get("Location"), with("Prefer", "wait=3")).is(t, "read while away", 503, "unavailable")
		held := d.charged("order-2", payments.StatusRequiresCapture, 0)
		go func() {
			time.Sleep(time.Second)
			d.store.set("acme", "capture-2", payments.StatusSucceeded)
		}()
		if got := d.ask(held, "capture", "capture-2", "", with("Prefer", "wait=3")); got.status != 200 || got.member("status") != "succeeded" {
			t.Errorf("a capture: %d %s", got.status, got.body)
		}
		d.store.setBefore(nil)
		if got := d.ask(charge, "refunds", "refund-1", "", with("Prefer", "wait=3")); got.status != 200 || got.member("stripe_refund") != "re_1" {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
}

// With too much unpublished nothing new is accepted, and what is there is answered as ever.
func TestFollowUpsBehindAClosedDoor(t *testing.T) {
	t.Parallel()
	unpublished := int64(0)
	d := newDesk(t, func(c *Config) {
		c.Unpublished, c.UnpublishedMax = func(context.Context) (int64, error) { return unpublished, nil }, 10
	})
	charge := d.charged("order-1", payments.StatusSucceeded, 9900)
	if got := d.ask(charge, "refunds", "refund-1", `{"amount":100}`); got.status != 202 {
		t.Fatalf("%s", got.body)
	}
	rows := d.store.stored()
	unpublished = 10
	d.clock.advance(time.Second)
	for _, what := range []string{"refunds", "capture", "cancel"} {
		d.ask(charge, what, what+"-2", "").is(t, what, 503, "unavailable")
	}
	d.ask(charge, "refunds", "refund-3", `{"amount":-1}`).is(t, "what is invalid", 400, "invalid_request")
	d.ask(charge, "refunds", "refund-1", `{"amount":101}`).is(t, "another request under the key", 422, "idempotency_key_reused")
	if got := d.ask(charge, "refunds", "refund-1", `{"amount":100}`); got.status != 202 || got.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("a repeat: %d %s", got.status, got.body)
	}
	if n := d.store.stored(); n != rows {
		t.Errorf("%d rows, want %d", n, rows)
	}
}

// 200 clients repeat the keys of 20 refunds of one payment at random: each is one refund, and no more is accepted than was taken.
func TestClientsRepeatingRefunds(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	charge := d.charged("order-1", payments.StatusSucceeded, 9900)
	const clients, keys = 200, 20
	var mu sync.Mutex
	stored, refused := map[string]int{}, map[string]int{}
	var group sync.WaitGroup
	for c := range clients {
		group.Go(func() {
			for i := range 10 {
				key := "refund-" + strconv.Itoa((c*7+i*3)%keys)
				got := d.ask(charge, "refunds", key, `{"amount":700}`)
				mu.Lock()
				switch {
				case got.status == 422 && got.code() == "amount_exceeds_available":
					refused[key]++
				case got.status != 202 || got.member("id") != payments.NewID("acme", key).Format(payments.KindRefund):
					t.Errorf("%s: %d %s", key, got.status, got.body)
				case got.header.Get("Idempotent-Replayed") == "":
					stored[key]++
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if len(stored) != 14 || len(refused) != keys-14 || d.store.stored() != 15 {
		t.Errorf("%d refunds of 700 were accepted of 9900, %d refused; %d rows", len(stored), len(refused), d.store.stored())
	}
	for key, n := range stored {
		if n != 1 || refused[key] != 0 {
			t.Errorf("%s was stored %d times, and refused %d times", key, n, refused[key])
		}
	}
	var list struct{ total float64 }
	for i := range keys {
		if got := d.get("/v1/refunds/" + payments.NewID("acme", fmt.Sprint("refund-", i)).Format(payments.KindRefund)); got.status == 200 {
			list.total += got.member("amount").(float64)
		}
	}
	if list.total != 9800 {
		t.Errorf("%v were accepted", list.total)
	}
}
