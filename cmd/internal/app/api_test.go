package app

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// key makes the tenant demo and a key of it.
func (w *world) key() string {
	w.t.Helper()
	store := w.store()
	if _, err := store.CreateTenant(w.t.Context(), postgres.Tenant{ID: "demo"}); err != nil {
		w.t.Fatal(err)
	}
	_, secret, err := store.CreateAPIKey(w.t.Context(), "demo", payments.Scopes(), time.Time{})
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

// post sends a payment; status 0 says that nobody answers.
func post(t *testing.T, addr, secret, key string) (status int, header http.Header, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/v1/payments",
		strings.NewReader(`{"amount":9900,"currency":"usd","payment_method":"pm_card_visa","metadata":{"order":"`+key+`"}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	r.Header.Set("Idempotency-Key", key)
	r.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	response, err := client.Do(r)
	if err != nil {
		return 0, nil, ""
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, nil, ""
	}
	return response.StatusCode, response.Header, string(data)
}

// TestServeAPIWithoutNATS: payments are accepted as soon as PostgreSQL is there, and made once the rest is: a NATS that is away, at the start or later,
// refuses nobody.
func TestServeAPIWithoutNATS(t *testing.T) {
	t.Parallel()
	simURL, sim := simulator(t, stripesim.Options{})
	w := newWorld(t, simURL)
	secret := w.key()
	database, broker := devstacktest.NewProxy(t, w.dsn), devstacktest.NewProxy(t, w.values["ONCEPAY_NATS_URL"])
	w.values["ONCEPAY_DATABASE_URL"], w.values["ONCEPAY_NATS_URL"] = devstacktest.Via(t, w.dsn, database.Addr()), "nats://"+broker.Addr()
	front := freeAddr(t)
	w.values["ONCEPAY_HTTP_ADDR"] = front
	database.Cut()
	broker.Cut()
	p := w.start()
	until(t, "who comes before PostgreSQL is told to come back", func() bool {
		status, header, body := post(t, front, secret, "early")
		return status == http.StatusServiceUnavailable && header.Get("Retry-After") != "" && strings.Contains(body, `"unavailable"`)
	})
	database.Heal()
	until(t, "a payment is accepted without NATS", func() bool { status, _, _ := post(t, front, secret, "early"); return status == http.StatusAccepted })
	until(t, "it is ready without NATS", func() bool {
		code, body := get(t, front, "/readyz")
		return code == http.StatusOK && strings.Contains(body, `"nats":"unavailable"`)
	})
	broker.Heal()
	p.waitReady(t)
	store := w.store()
	until(t, "the payment is made", func() bool { return status(t, store, "early") == payments.StatusSucceeded })
	broker.Cut()
	until(t, "a broker that is away is told", func() bool {
		_, body := get(t, front, "/readyz")
		return strings.Contains(body, `"nats":"unavailable"`)
	})
	if status, _, body := post(t, front, secret, "late"); status != http.StatusAccepted {
		t.Errorf("with NATS away: %d %s", status, body)
	}
	until(t, "the ticket brings the payment to Stripe without NATS", func() bool { return status(t, store, "late") == payments.StatusSucceeded })
	broker.Heal()
	until(t, "its copy is published at last", func() bool { n, err := store.Unpublished(t.Context()); return err == nil && n == 0 })
	if s := sim.Summary(); s.Charges != 2 || s.DoubleCharges != 0 {
		t.Errorf("%d charges, %d double", s.Charges, s.DoubleCharges)
	}
	p.stop()
	if err := p.wait(t); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// TestServeIngressAlone: with no other role nothing but PostgreSQL is needed, and nothing else is asked for.
func TestServeIngressAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "http://127.0.0.1:1")
	secret := w.key()
	w.values["ONCEPAY_ROLES"], w.values["ONCEPAY_NATS_URL"] = "ingress", "nats://127.0.0.1:1"
	p := w.start()
	p.waitReady(t)
	if status, header, body := post(t, p.http, secret, "alone"); status != http.StatusAccepted || header.Get("Location") == "" {
		t.Errorf("%d %s", status, body)
	}
	until(t, "it is ready, and does not know of NATS", func() bool {
		code, body := get(t, p.http, "/readyz")
		return code == http.StatusOK && !strings.Contains(body, "nats")
	})
	for _, path := range []string{"/openapi.json", "/docs", "/metrics", "/healthz"} {
		if code, _ := get(t, p.http, path); code != http.StatusOK {
			t.Errorf("%s: %d", path, code)
		}
	}
	p.stop()
	if err := p.wait(t); err != nil {
		t.Errorf("Serve: %v", err)
	}
	w.values["ONCEPAY_HTTP_ADDR"] = "off"
	if err := w.start().wait(t); err == nil || !strings.HasPrefix(err.Error(), "ONCEPAY_HTTP_ADDR: ") {
		t.Errorf("without an address: %v", err)
	}
}
