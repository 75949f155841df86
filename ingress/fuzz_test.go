package ingress

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/payments"
)

// fuzzAPI is an API for fuzzing; every request of it meets a store that holds a payment and a batch.
func fuzzAPI(f *testing.F) http.Handler {
	clock := newFakeClock()
	store := newFakeStore(clock)
	store.addKey(acmeSecret, "acme", payments.Scopes()...)
	api, err := New(Config{Store: store, FollowUps: store, Batches: store, Reader: store, FollowUpReader: store, Keys: store, Clock: clock, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	return api.Handler()
}

// secretValue stands in requests as a value, so that an answer that repeats values is seen. It looks like no member's name: those are repeated.
const secretValue = "c0ffee.31337.secret"

func judge(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	if w.Code >= 500 || w.Code < 200 || !json.Valid(w.Body.Bytes()) || w.Header().Get("Request-Id") == "" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if w.Code >= 300 && w.Code < 400 {
		t.Errorf("a redirect: %v", w.Header())
	}
	if w.Code >= 400 && bytes.Contains(w.Body.Bytes(), []byte(secretValue)) {
		t.Errorf("the answer repeats a value: %s", w.Body)
	}
}

func FuzzBodies(f *testing.F) {
	for _, body := range []string{goodBody, goodBatch, "", "{", `{"amount":`, `{"payments":[{}]}`, "\xff", `{"description":"\ud800"}`, `[[[[`, `{"metadata":{"a":{}}}`, "\x00", "4242424242424242"} {
		f.Add("order-1", []byte(body), false)
		f.Add(`"a\"b"`, []byte(strings.Replace(body, "{", `{"description":"`+secretValue+`",`, 1)), true)
	}
	h := fuzzAPI(f)
	f.Fuzz(func(t *testing.T, key string, body []byte, batch bool) {
		target := "/v1/payments"
		if batch {
			target = "/v1/batches"
		}
		r := httptest.NewRequest("POST", target, bytes.NewReader(body))
		r.Header = http.Header{"Authorization": {"Bearer " + acmeSecret}, "Content-Type": {"application/json"}, "Idempotency-Key": {key}}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		judge(t, w)
	})
}

func FuzzFollowUps(f *testing.F) {
	charge := payments.NewID("acme", "order-1").String()
	for _, body := range []string{"", "{}", `{"amount":1}`, `{"reason":"duplicate"}`, `{"metadata":{"a":"b"}}`, "{", "\xff", `{"amount":1e2}`, `{"reason":null}`, `{"metadata":{"oncepay_x":"y"}}`} {
		for i, what := range []string{"capture", "cancel", "refunds"} {
			f.Add([]string{charge, "pay_1", "ref_" + charge[4:]}[i], what, []byte(body))
			f.Add(charge, what, []byte(strings.Replace(body, "{", `{"reason":"`+secretValue+`",`, 1)))
		}
	}
	h := fuzzAPI(f)
	f.Fuzz(func(t *testing.T, id, what string, body []byte) {
		r := httptest.NewRequest("POST", "/", bytes.NewReader(body))
		r.URL.Path = "/v1/payments/" + id + "/" + what
		r.Header = http.Header{"Authorization": {"Bearer " + acmeSecret}, "Content-Type": {"application/json"}, "Idempotency-Key": {"k"}}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		judge(t, w)
	})
}

func FuzzRequests(f *testing.F) {
	for _, path := range []string{"/v1/refunds/ref_1", "/v1/operations/op_1", "/v1/payments/pay_1/refunds", "/v1/payments", "/v1/payments/pay_1", "/v1/batches/bat_1", "//", "/../x", "/%2e%2e/", "*", "/v1/payments/%ff/events", "/docs", "", "http://x/v1/payments", "/v1/payments/" + secretValue} {
		f.Add("GET", path, "limit=1&status=succeeded", "Bearer "+acmeSecret, "order-1", "wait=0")
		f.Add("DELETE", path, "cursor="+secretValue, "Bearer opk_x", `"`, `wait="`)
	}
	h := fuzzAPI(f)
	f.Fuzz(func(t *testing.T, method, path, query, authorization, key, prefer string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Method, r.URL.Path, r.URL.RawQuery = method, path, query
		r.Header = http.Header{"Authorization": {authorization}, "Idempotency-Key": {key}, "Prefer": {prefer}}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		judge(t, w)
	})
}
