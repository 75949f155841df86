package stripesim

import (
	"path/filepath"
	"strings"
	"testing"
)

func (r *rig) attach(id, customer string) result {
	return r.do(call{path: methodsPath + "/" + id + "/attach", form: form("customer", customer)})
}

func (r *rig) detach(id string) result { return r.do(call{path: methodsPath + "/" + id + "/detach"}) }

// An attached payment method charges its customer, and nobody else, until it is detached.
func TestAttachedUntilDetached(t *testing.T) {
	t.Parallel()
	opts := Options{Path: filepath.Join(t.TempDir(), "ledger")}
	r := newRig(t, opts)
	m := r.attach("pm_card_visa", "cus_1").want(t, 200, map[string]any{"object": "payment_method", "customer": "cus_1", "card.last4": "4242"})
	id := m["id"].(string)
	for _, key := range []string{"one", "two"} {
		r.pay(key, "payment_method", id, "customer", "cus_1").want(t, 200, map[string]any{"status": succeeded, "payment_method": id})
	}
	r.pay("other", "payment_method", id, "customer", "cus_2").want(t, 400, map[string]any{"error.code": "resource_missing"})
	r.pay("nobody", "payment_method", id).want(t, 400, map[string]any{"error.type": "invalid_request_error"})
	r.attach(id, "cus_1").want(t, 200, map[string]any{"id": id})
	r.attach(id, "cus_2").want(t, 400, nil)
	open := r.do(call{path: intentsPath, form: form("amount", "500", "currency", "usd", "payment_method", id, "customer", "cus_1")}).want(t, 200,
		map[string]any{"status": needsConfirmation, "payment_method": id})

	r = r.reopen(opts)
	r.pay("three", "payment_method", id, "customer", "cus_1").want(t, 200, map[string]any{"payment_method": id})
	r.detach(id).want(t, 200, map[string]any{"id": id, "customer": nil})
	r = r.reopen(opts)
	refused := r.pay("four", "payment_method", id, "customer", "cus_1").want(t, 400, map[string]any{"error.type": "invalid_request_error", "error.code": nil})
	if message := at(refused, "error.message").(string); !strings.Contains(message, "detached from a Customer. It may not be used again") {
		t.Errorf("refused: %s", message)
	}
	r.do(call{path: intentsPath + "/" + open["id"].(string) + "/confirm", form: form("off_session", "true")}).want(t, 400, nil)
	r.attach(id, "cus_1").want(t, 400, nil)
	r.detach(id).want(t, 400, nil)
	// A repeat under the first key is the first answer, whatever became of the method since.
	again := r.pay("one", "payment_method", id, "customer", "cus_1")
	again.want(t, 200, map[string]any{"status": succeeded})
	if again.header.Get("Idempotent-Replayed") != "true" || r.sim.Summary().Charges != 3 {
		t.Errorf("%d charges, headers %v", r.sim.Summary().Charges, again.header)
	}
}

func TestAttachAndDetachRefuse(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	for name, c := range map[string]struct {
		res    result
		status int
	}{
		"unknown":         {r.attach("pm_nobody", "cus_1"), 404},
		"no customer":     {r.attach("pm_card_visa", ""), 400},
		"strange":         {r.attach("pm_card_visa", "nobody"), 400},
		"declined card":   {r.attach("pm_card_visa_chargeDeclined", "cus_1"), 402},
		"fails later":     {r.attach("pm_card_chargeCustomerFail", "cus_1"), 200},
		"never attached":  {r.detach("pm_card_visa"), 400},
		"unknown detach":  {r.detach("pm_nobody"), 404},
		"with parameters": {r.do(call{path: methodsPath + "/pm_card_visa/detach", form: form("customer", "cus_1")}), 400},
	} {
		if c.res.status != c.status {
			t.Errorf("%s: status %d, want %d: %s", name, c.res.status, c.status, c.res.body)
		}
	}
	keyed := call{path: methodsPath + "/pm_card_visa/attach", key: "k", form: form("customer", "cus_1")}
	first, again := r.do(keyed), r.do(keyed)
	if first.status != 200 || again.body != first.body || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%s, then %s", first.body, again.body)
	}
}
