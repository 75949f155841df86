package ingress

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/payments"
)

// keysOf reads the keys of a page and its cursor.
func (g reply) page(t *testing.T) (keys []string, next string) {
	t.Helper()
	var page struct {
		Data []struct {
			Key string `json:"idempotency_key"`
		}
		Next *string `json:"next_cursor"`
	}
	if err := json.Unmarshal(g.body, &page); err != nil || g.status != 200 || page.Data == nil {
		t.Fatalf("%d %s", g.status, g.body)
	}
	for _, p := range page.Data {
		keys = append(keys, p.Key)
	}
	if page.Next != nil {
		next = *page.Next
	}
	return keys, next
}

func TestListPayments(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	if got := d.get("/v1/payments"); string(got.body) != `{"data":[],"next_cursor":null}` {
		t.Errorf("none: %s", got.body)
	}
	for i := range 5 {
		d.post("/v1/payments", "order-"+strconv.Itoa(i), strings.Replace(goodBody, "cus_1", "cus_"+strconv.Itoa(i%2), 1))
	}
	d.post("/v1/payments", "theirs", goodBody, as(globexSecret))
	d.store.set("acme", "order-3", payments.StatusSucceeded)
	for query, want := range map[string][]string{
		"":                                   {"order-0", "order-1", "order-2", "order-3", "order-4"},
		"?limit=1000":                        {"order-0", "order-1", "order-2", "order-3", "order-4"},
		"?customer=cus_1":                    {"order-1", "order-3"},
		"?status=succeeded":                  {"order-3"},
		"?status=processing":                 nil,
		"?idempotency_key=order-4":           {"order-4"},
		"?idempotency_key=theirs":            nil,
		"?customer=cus_1&status=succeeded":   {"order-3"},
		"?customer=cus%5F1&status=received":  {"order-1"},
		"?idempotency_key=run::0&limit=1":    nil,
		"?idempotency_key=order-4&limit=100": {"order-4"},
	} {
		if keys, next := d.get("/v1/payments" + query).page(t); !slices.Equal(keys, want) || next != "" {
			t.Errorf("%q: %v %q", query, keys, next)
		}
	}
	var all []string
	for cursor := ""; ; {
		keys, next := d.get("/v1/payments?limit=2" + cursor).page(t)
		if all = append(all, keys...); next == "" {
			break
		}
		cursor = "&cursor=" + next
	}
	if !slices.Equal(all, []string{"order-0", "order-1", "order-2", "order-3", "order-4"}) {
		t.Errorf("page by page: %v", all)
	}
}

// A key names one request, whatever it asks for: whoever looks among payments for one that names something else is told where that is, since an empty page
// would be taken for leave to ask for it again. Another tenant's key names nothing.
func TestKeysOfOtherRequestsAmongPayments(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	charge, held := d.charged("order-1", payments.StatusSucceeded, 9900), d.charged("order-2", payments.StatusRequiresCapture, 0)
	paths := map[string]string{"run": "/v1/batches/" + d.post("/v1/batches", "run", goodBatch).member("id").(string)}
	for key, of := range map[string][2]string{"refund-1": {charge, "refunds"}, "capture-1": {held, "capture"}} {
		paths[key] = d.ask(of[0], of[1], key, "").header.Get("Location")
	}
	for key, path := range paths {
		got := d.get("/v1/payments?idempotency_key=" + key)
		got.is(t, key, 400, "invalid_request")
		if !slices.Equal(got.fields(), []string{"idempotency_key"}) || !strings.Contains(string(got.body), "it is at "+path) || d.get(path).member("idempotency_key") != key {
			t.Errorf("%s: %s, want %s", key, got.body, path)
		}
		if got := d.get("/v1/payments?idempotency_key="+key, as(globexSecret)); string(got.body) != `{"data":[],"next_cursor":null}` {
			t.Errorf("%s of another tenant: %d %s", key, got.status, got.body)
		}
	}
	if got := d.get("/v1/payments?idempotency_key=order-1&status=failed"); string(got.body) != `{"data":[],"next_cursor":null}` {
		t.Errorf("a payment that the other filter leaves out: %d %s", got.status, got.body)
	}
	for _, verb := range []string{"find_follow_up", "show_batch"} {
		d.store.setBefore(func(_ context.Context, v string) error {
			if v == verb {
				return errAway
			}
			return nil
		})
		d.get("/v1/payments?idempotency_key=nothing").is(t, verb, 503, "unavailable")
	}
}

func TestBadQueries(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for target, field := range map[string]string{
		"/v1/payments?limit=0": "limit", "/v1/payments?limit=1001": "limit", "/v1/payments?limit=-1": "limit", "/v1/payments?limit=ten": "limit", "/v1/payments?limit=1.0": "limit",
		"/v1/payments?limit=%2B5": "limit", "/v1/payments?limit=05": "limit", "/v1/payments?limit=": "limit", "/v1/payments?limit": "limit", "/v1/payments?limit=1&limit=2": "limit",
		"/v1/payments?status=paid": "status", "/v1/payments?status=SUCCEEDED": "status", "/v1/payments?status=": "status", "/v1/payments?stauts=succeeded": "stauts", "/v1/payments?Status=succeeded": "Status",
		"/v1/payments?tenant_id=globex": "tenant_id", "/v1/payments?cursor=nonsense": "cursor", "/v1/payments?idempotency_key=a%20b": "idempotency_key", "/v1/payments?idempotency_key=%00": "idempotency_key",
		"/v1/payments?customer=" + strings.Repeat("c", 256): "customer", "/v1/payments?a;b": "query", "/v1/payments?%zz": "query", "/v1/payments?sk_live_0123456789=1": "query", "/v1/payments?=1": "query",
		"/v1/payments?" + strings.Repeat("n", 41) + "=1": "query", "/v1/payments/pay_1?expand=1": "expand", "/v1/payments/pay_1/events?limit=1": "limit",
		"/v1/batches?limit=0": "limit", "/v1/batches?status=failed": "status", "/v1/batches?parent=": "parent", "/v1/batches?parent=a%20b": "parent", "/v1/batches/bat_1?x=1": "x",
	} {
		got := d.get(target)
		if got.is(t, target, 400, "invalid_request"); !slices.Equal(got.fields(), []string{field}) {
			t.Errorf("%s: %s", target, got.body)
		}
		for _, value := range []string{"globex", "nonsense", "SUCCEEDED", "paid", "sk_live", "ten\"", "1001"} {
			if strings.Contains(string(got.body), value) {
				t.Errorf("%s: the answer repeats %s: %s", target, value, got.body)
			}
		}
	}
	got := d.post("/v1/payments?dry_run=1", "order-1", goodBody)
	if got.is(t, "a parameter of a POST", 400, "invalid_request"); !slices.Equal(got.fields(), []string{"dry_run"}) {
		t.Errorf("%s", got.body)
	}
}
