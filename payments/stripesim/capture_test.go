package stripesim

import (
	"path/filepath"
	"testing"
)

// What is held is captured once, whole or in part, and stays one charge of the ledger, also after a restart.
func TestCapture(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger")
	r := newRig(t, Options{Path: path})
	held := func(key string) string {
		return at(r.pay(key, "capture_method", "manual").want(t, 200, map[string]any{"status": needsCapture}), "id").(string)
	}
	take := func(id string, kv ...string) result {
		return r.do(call{path: intentsPath + "/" + id + "/capture", form: form(kv...)})
	}
	whole, part := held("whole"), held("part")
	take(whole, "amount_to_capture", "2001").want(t, 400, map[string]any{"error.code": "amount_too_large"})
	take(whole, "amount_to_capture", "0").want(t, 400, nil)
	take(whole, "surprise", "1").want(t, 400, map[string]any{"error.code": "parameter_unknown"})
	take("pi_none").want(t, 404, nil)
	take(whole).want(t, 200, map[string]any{"status": succeeded, "amount": 2000.0, "amount_received": 2000.0, "amount_capturable": 0.0})
	take(part, "amount_to_capture", "500").want(t, 200, map[string]any{"status": succeeded, "amount": 2000.0, "amount_received": 500.0, "amount_capturable": 0.0})
	take(whole).want(t, 400, map[string]any{"error.code": "payment_intent_unexpected_state", "error.payment_intent.status": succeeded})
	ended := held("ended")
	r.do(call{path: intentsPath + "/" + ended + "/cancel"}).want(t, 200, nil)
	take(ended).want(t, 400, map[string]any{"error.code": "payment_intent_unexpected_state", "error.payment_intent.status": canceled})
	check := func(sim *Server) {
		t.Helper()
		charges := sim.Ledger().Charges
		if len(charges) != 3 || charges[0].AmountCaptured != 2000 || charges[1].AmountCaptured != 500 || charges[2].Captured || !charges[0].Captured || !charges[1].Captured || charges[0].ID == charges[1].ID {
			t.Errorf("%+v", charges)
		}
	}
	check(r.sim)
	if b := at(r.get("/v1/balance").object(t)["available"].([]any)[0], "amount"); b != 2500.0 {
		t.Errorf("balance %v", b)
	}
	mustNil(t, r.sim.Close())
	again, err := New(Options{Path: path})
	mustNil(t, err)
	defer again.Close()
	check(again)
}
