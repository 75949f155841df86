package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// order publishes the smallest message of a tenant.
func (w *world) order(tenant, key string) {
	w.t.Helper()
	nc, err := nats.Connect(w.values["ONCEPAY_NATS_URL"], nats.Timeout(patience))
	if err != nil {
		w.t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		w.t.Fatal(err)
	}
	body := `{"idempotency_key":"` + key + `","amount":9900,"currency":"usd","customer":"cus_1","payment_method":"pm_card_visa"}`
	if _, err := js.Publish(w.t.Context(), w.values["ONCEPAY_SUBJECT_PREFIX"]+".intent."+tenant, []byte(body)); err != nil {
		w.t.Fatal(err)
	}
}

// TestServeTenantsOfTheirOwn: a serving process reads tenants' accounts at its start, tells which are broken before they have a payment, and
// charges each tenant where it belongs.
func TestServeTenantsOfTheirOwn(t *testing.T) {
	t.Parallel()
	url, sim := simulator(t, stripesim.Options{Keys: []stripesim.Key{
		{Secret: "sk_test_simulated", Account: "acct_1Own"}, {Secret: "sk_test_keyed0000", Account: "acct_1Keyed"},
	}})
	w := newWorld(t, url)
	store, dir := w.store(), t.TempDir()
	for name, text := range map[string]string{"keyed": "sk_test_keyed0000\n", "broken": "sk_test_hunter2hunter2\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tenant := range []postgres.Tenant{
		{ID: "demo"}, {ID: "keyed", StripeKeyRef: "file:" + filepath.Join(dir, "keyed")}, {ID: "broken", StripeKeyRef: "file:" + filepath.Join(dir, "broken")},
		{ID: "connected", StripeAccount: "acct_1Connected"},
	} {
		if _, err := store.CreateTenant(t.Context(), tenant); err != nil {
			t.Fatal(err)
		}
	}
	p := w.start()
	p.waitReady(t)
	until(t, "the broken tenant is told", func() bool {
		return strings.Contains(w.log.String(), "tenant broken: the key in file:"+filepath.Join(dir, "broken")+" was refused by Stripe (401)")
	})
	until(t, "the other accounts are known", func() bool {
		keyed, _, err := store.TenantRoute(t.Context(), "keyed")
		connected, _, failed := store.TenantRoute(t.Context(), "connected")
		return err == nil && failed == nil && keyed.Account.ID == "acct_1Keyed" && connected.Account.ID == "acct_1Connected"
	})
	until(t, "the metrics count the broken tenant", func() bool {
		_, body := get(t, p.http, "/metrics")
		return strings.Contains(body, "\noncepay_tenants_held_back 1\n")
	})
	tenants := map[string]string{"demo": "acct_1Own", "keyed": "acct_1Keyed", "connected": "acct_1Connected"}
	w.order("broken", "order-1")
	for tenant := range tenants {
		w.order(tenant, "order-1")
	}
	for tenant := range tenants {
		until(t, tenant+" is charged", func() bool {
			pay, err := store.FindByKey(t.Context(), tenant, "order-1")
			return err == nil && pay.Status == payments.StatusSucceeded && pay.StripeAccount == tenants[tenant]
		})
	}
	until(t, "the broken tenant's payment waits", func() bool {
		pay, err := store.FindByKey(t.Context(), "broken", "order-1")
		return err == nil && pay.Status == payments.StatusWaiting && pay.Reason == payments.ReasonAccountUnknown
	})
	for _, c := range sim.Ledger().Charges {
		if tenants[c.Metadata["oncepay_tenant"]] != c.Account {
			t.Errorf("%s was charged on %s", c.Metadata["oncepay_tenant"], c.Account)
		}
	}
	if n := len(sim.Ledger().Charges); n != 3 || strings.Contains(w.log.String(), "hunter2") {
		t.Errorf("%d charges; log %s", n, w.log.String())
	}
	p.stop()
	if err := p.wait(t); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// TestServeKeyThatMayNotReadItsAccount: the installation's account must then be set, and the error says so.
func TestServeKeyThatMayNotReadItsAccount(t *testing.T) {
	t.Parallel()
	url, _ := simulator(t, stripesim.Options{Keys: []stripesim.Key{{Secret: "rk_test_simulated", Account: "acct_1Own", Deny: []string{"GET /v1/account"}}}})
	w := newWorld(t, url)
	w.values["ONCEPAY_STRIPE_KEY"] = "rk_test_simulated"
	var usage *UsageError
	if err := w.start().wait(t); !errors.As(err, &usage) || !strings.HasPrefix(usage.Text, "ONCEPAY_STRIPE_ACCOUNT: is needed: the key may not read its own account") {
		t.Errorf("Serve: %v", err)
	}
	w.values["ONCEPAY_STRIPE_ACCOUNT"] = "acct_1Wrong" // Stripe's refusal names the account
	if err := w.start().wait(t); !errors.As(err, &usage) || usage.Text != "ONCEPAY_STRIPE_ACCOUNT: is acct_1Wrong, but the key belongs to acct_1Own; correct one of them" {
		t.Errorf("Serve: %v", err)
	}
	w.values["ONCEPAY_STRIPE_ACCOUNT"] = "acct_1Own"
	p := w.start()
	p.waitReady(t)
	p.stop()
	if err := p.wait(t); err != nil {
		t.Errorf("Serve: %v", err)
	}
}
