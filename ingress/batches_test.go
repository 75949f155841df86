package ingress

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/payments"
)

func TestCreateBatch(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	got := d.post("/v1/batches", "run", goodBatch)
	id := payments.NewID("acme", "run").Format(payments.KindBatch)
	want := fmt.Sprintf(`{"id":"%s","payments":[{"index":0,"id":"%s","idempotency_key":"run::0","status":"received"},{"index":1,"id":"%s","idempotency_key":"run::1","status":"received"}]}`,
		id, payments.NewID("acme", "run::0"), payments.NewID("acme", "run::1"))
	if got.status != 202 || got.header.Get("Location") != "/v1/batches/"+id || string(got.body) != want {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
	d.store.set("acme", "run::0", payments.StatusSucceeded)
	again := d.post("/v1/batches", "run", strings.ReplaceAll(goodBatch, ",", " , "))
	if again.status != 202 || again.header.Get("Idempotent-Replayed") != "true" || !strings.Contains(string(again.body), `"run::0","status":"succeeded"`) {
		t.Errorf("%d %s", again.status, again.body)
	}
	shown := d.get("/v1/batches/" + id)
	if string(shown.body) != `{"id":"`+id+`","idempotency_key":"run","parent":"run-1","count":2,"by_status":{"received":{"count":1,"amount":{"eur":200}},"succeeded":{"count":1,"amount":{"usd":100}}},"complete":false}` {
		t.Errorf("%s", shown.body)
	}
	if keys, _ := d.get("/v1/batches?parent=run-1").page(t); !slices.Equal(keys, []string{"run"}) {
		t.Errorf("%v", keys)
	}
	if keys, _ := d.get("/v1/batches?parent=run-2").page(t); keys != nil {
		t.Errorf("%v", keys)
	}
	if keys, _ := d.get("/v1/batches", as(globexSecret)).page(t); keys != nil {
		t.Errorf("another tenant's: %v", keys)
	}
	child := d.get("/v1/payments/" + payments.NewID("acme", "run::1").String())
	if child.status != 200 || child.member("batch_id") != id {
		t.Errorf("%s", child.body)
	}
}

// Field fault 34: a batch is its payments, their number and their order.
func TestChangedBatches(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.post("/v1/batches", "run", goodBatch)
	first, second := `{"amount":100,"currency":"usd","payment_method":"pm_1"}`, `{"amount":200,"currency":"eur","payment_method":"pm_2"}`
	for body, differs := range map[string][]string{
		`{"payments":[` + first + `],"parent":"run-1"}`:                                                 {"payments"},
		`{"payments":[` + second + `],"parent":"run-1"}`:                                                {"payments", "payments[0].amount", "payments[0].currency", "payments[0].payment_method"},
		`{"payments":[` + first + `,` + second + `]}`:                                                   {"parent"},
		`{"payments":[` + first + `,` + strings.Replace(second, "200", "-1", 1) + `],"parent":"run-1"}`: {"payments[1].amount"},
	} {
		got := d.post("/v1/batches", "run", body)
		if got.is(t, body, 422, "idempotency_key_reused"); !slices.Equal(got.differs(), differs) {
			t.Errorf("%s: %s", body, got.body)
		}
	}
	got := d.post("/v1/batches", "run", `{"payments":[`+second+`,`+first+`],"parent":"run-1"}`)
	if got.is(t, "another order", 422, "idempotency_key_reused"); len(got.differs()) != 6 {
		t.Errorf("%s", got.body)
	}
	if d.store.stored() != 3 {
		t.Errorf("%d rows", d.store.stored())
	}
}

func TestInvalidBatches(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	one := `{"amount":100,"currency":"usd","payment_method":"pm_1"}`
	for body, fields := range map[string][]string{
		`{}`: {"payments"}, `{"payments":[]}`: {"payments"}, `{"payments":{}}`: {"payments"}, `{"payments":[1]}`: {"payments[0]"}, `{"payments":null}`: {"payments"}, goodBody: {"amount"},
		`{"payments":[` + strings.Repeat(one+",", 100) + one + `]}`:                                            {"payments"},
		`{"payments":[` + strings.Replace(one, "{", `{"idempotency_key":"x",`, 1) + `]}`:                       {"payments[0].idempotency_key"},
		`{"payments":[` + one + `,` + strings.Replace(one, "100", "0", 1) + `,{"amount":5,"currency":"usd"}]}`: {"payments[1].amount", "payments[2].payment_method"},
		`{"payments":[` + one + `],"parent":"a b"}`:                                                            {"parent"},
		`{"payments":[` + one + `],"parent":""}`:                                                               {"parent"},
	} {
		got := d.post("/v1/batches", "run", body)
		if got.is(t, body, 400, "invalid_request"); !slices.Equal(got.fields(), fields) {
			t.Errorf("%.80s: %s", body, got.body)
		}
	}
	if d.post("/v1/batches", "none's", `{"payments":[`+one+`]}`); d.post("/v1/batches", "none's", `{"parent":"","payments":[`+one+`]}`).status != 202 {
		t.Error("a repeat of what was accepted when an empty parent was none is refused")
	}
	before := d.store.stored()
	d.post("/v1/batches", strings.Repeat("k", 241), goodBatch).is(t, "241 characters", 400, "idempotency_key_invalid")
	if d.store.stored() != before {
		t.Errorf("%d rows more", d.store.stored()-before)
	}
	if got := d.post("/v1/batches", strings.Repeat("k", 240), goodBatch); got.status != 202 {
		t.Errorf("240 characters: %d %s", got.status, got.body)
	}
	if got := d.post("/v1/batches", "full", `{"payments":[`+strings.Repeat(one+",", 99)+one+`]}`); got.status != 202 {
		t.Errorf("100 payments: %d %s", got.status, got.body)
	}
}
