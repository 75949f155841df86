package doctor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/oncepay/oncepay/payments/stripesim"
)

// testRights: a restricted key that charges and may not read what look-ups need is told which permission it lacks, also a tenant's own.
func testRights(t *testing.T, s *services) {
	w := s.world(t)
	keys := func(own, tenants []string) {
		w.simulate(stripesim.Options{Keys: []stripesim.Key{{Secret: "sk_test_simulated", Deny: own}, {Secret: "rk_test_tenant", Account: "acct_tenant", Deny: tenants}}})
	}
	keys(nil, nil)
	w.expect(map[string]expectation{"stripe_rights": is(OK, "the key may read PaymentIntents, events and refunds")})
	keys([]string{"GET /v1/events"}, nil)
	w.expect(map[string]expectation{"stripe_rights": is(Failed, "ONCEPAY_STRIPE_KEY: may not read events (403)", `give it "Events: Read"`, "edit the restricted key in Stripe's dashboard")})
	keys([]string{"GET /v1/events", "GET /v1/payment_intents"}, nil)
	w.expect(map[string]expectation{"stripe_rights": is(Failed, `give it "PaymentIntents: Write"`, " | ", `give it "Events: Read"`)})
	keys([]string{"GET /v1/refunds"}, nil)
	w.expect(map[string]expectation{"stripe_rights": is(Warning, "ONCEPAY_STRIPE_KEY: may not read refunds (403)", `give it "Charges and Refunds: Write"`, "refunds wait")})
	keys([]string{"GET /v1/refunds", "GET /v1/events"}, nil)
	w.expect(map[string]expectation{"stripe_rights": is(Failed, `give it "Events: Read"`)})
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("rk_test_tenant\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.sql(`INSERT INTO tenants (id, created_at, stripe_key_ref) VALUES ('own', now(), 'file:` + file + `')`)
	keys(nil, []string{"GET /v1/events"})
	w.expect(map[string]expectation{"stripe_tenants": is(OK, "all 1 tenant"), "stripe_rights": is(Failed, "tenant own: the key in "+"file:"+file+" may not read events", `give it "Events: Read"`)})
	keys(nil, []string{"GET /v1/refunds"})
	w.expect(map[string]expectation{"stripe_tenants": is(OK, "all 1 tenant"), "stripe_rights": is(Warning, "tenant own: the key in "+"file:"+file+" may not read refunds")})
	keys(nil, nil)
	w.expect(map[string]expectation{"stripe_tenants": is(OK), "stripe_rights": is(OK, "2 accounts")})
	sim := w.simulate(stripesim.Options{})
	if err := sim.AddFault(stripesim.Rule{Match: stripesim.Match{Method: "GET", Path: "/v1/events"}, Fault: "html_502"}); err != nil {
		t.Fatal(err)
	}
	w.sql(`DELETE FROM tenants`)
	w.expect(map[string]expectation{"stripe_rights": is(Warning, "GET /v1/events: answered 502", "ask again")})
}
