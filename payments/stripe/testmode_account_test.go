package stripe

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments/paymentstest"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// testMode is an account in Stripe's test mode, with a customer that is there while the tests run.
type testMode struct {
	key, url, customer, prefix string
	client                     *http.Client
	// slots bounds how many parts of the suite run at once: test mode takes 25 requests a second (docs.stripe.com/rate-limits).
	slots chan struct{}
}

// openTestMode refuses every key but one of test mode, before anything is sent, and makes the customer.
func openTestMode(ctx context.Context, key, url string) (*testMode, error) {
	switch {
	case key == "":
		return nil, errors.New("ONCEPAY_STRIPE_TEST_KEY is not set; set it to a key of Stripe's test mode, sk_test_… or rk_test_…, or leave out the tag stripetest")
	case liveKey(key) || !testKey(key) || !validKey(key):
		return nil, errors.New("ONCEPAY_STRIPE_TEST_KEY is no key of Stripe's test mode (sk_test_… or rk_test_…); with a live key these tests would move money")
	}
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return nil, err
	}
	m := &testMode{
		key: key, url: url, prefix: hex.EncodeToString(b[:]) + "/", slots: make(chan struct{}, 4),
		client: &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}, Timeout: 30 * time.Second},
	}
	var err error
	m.customer, err = m.call(ctx, http.MethodPost, "/v1/customers", "description=Oncepay+conformance+suite")
	return m, err
}

// close deletes the customer.
func (m *testMode) close(ctx context.Context) error {
	defer m.client.CloseIdleConnections()
	_, err := m.call(ctx, http.MethodDelete, "/v1/customers/"+m.customer, "")
	return err
}

// call does something with the customer, and returns its id. Errors never contain the key or what Stripe says.
func (m *testMode) call(ctx context.Context, method, path, body string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, m.url+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+m.key)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := m.client.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var customer struct{ ID, Object string }
	err = json.NewDecoder(io.LimitReader(resp.Body, answerMax)).Decode(&customer)
	if err != nil || resp.StatusCode != http.StatusOK || customer.Object != "customer" || !validID(customer.ID, "cus_") {
		return "", fmt.Errorf("%s %s: Stripe answered %d, and not with a customer", method, path, resp.StatusCode)
	}
	return customer.ID, nil
}

// open gives one part of the suite a Gateway of its own.
func (m *testMode) open(t *testing.T) paymentstest.Stripe {
	t.Helper()
	m.slots <- struct{}{}
	t.Cleanup(func() { <-m.slots })
	o := options(m.url)
	o.Key, o.Timeout = m.key, 30*time.Second
	g, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	if g.account.Livemode {
		t.Fatal("Stripe says that the key moves real money; use one of test mode")
	}
	return paymentstest.Stripe{
		Gateway: g, FollowUps: g, Namespace: testNamespace, RequestVersion: RequestVersion, TenantID: "conformance", Customer: m.customer, KeyPrefix: m.prefix, Now: time.Now,
		Post: func(path, form string) (string, error) { return post(t.Context(), m.url, m.key, path, form) }, Body: bodyOf,
	}
}

func TestOnlyKeysOfTestModeAreUsed(t *testing.T) {
	t.Parallel()
	s := newRawServer(t, raw(""))
	for _, key := range []string{"", "sk_live_0123456789", "rk_live_0123456789", "sk_org_live_0123456789", "sk_test_live_0123456789_live_", "pk_test_0123456789", "0123456789", "sk_test_ 1234567"} {
		if _, err := openTestMode(t.Context(), key, s.url); err == nil || !strings.Contains(err.Error(), "ONCEPAY_STRIPE_TEST_KEY") || key != "" && strings.Contains(err.Error(), key) {
			t.Errorf("%q: %v", key, err)
		}
	}
	if s.bytes.Load() != 0 {
		t.Error("something was sent with such a key")
	}
}

// TestTestModeSetup runs all that the run on Stripe's test mode does, on the simulator, which has no customers of its own.
func TestTestModeSetup(t *testing.T) {
	t.Parallel()
	sim, err := stripesim.New(stripesim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	customers := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, named := strings.CutPrefix(r.URL.Path, "/v1/customers")
		if !named {
			sim.ServeHTTP(w, r)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		id = strings.TrimPrefix(id, "/")
		switch {
		case r.Method == http.MethodPost && id == "":
			id = fmt.Sprintf("cus_%d", len(customers)+1)
			customers[id] = true
		case r.Method == http.MethodDelete && customers[id]:
			delete(customers, id)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = fmt.Fprintf(w, `{"id":%q,"object":"customer"}`, id)
	}))
	t.Cleanup(func() {
		server.Close()
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
	})
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(customers)
	}
	m, err := openTestMode(t.Context(), "sk_test_0123456789", server.URL)
	if err != nil || count() != 1 {
		t.Fatalf("%v, %d customers", err, count())
	}
	t.Run("suite", func(t *testing.T) { paymentstest.Gateway(t, m.open) }) // ends when all its parts have
	t.Run("follow-ups", func(t *testing.T) { paymentstest.FollowUpGateway(t, m.open) })
	if err := m.close(t.Context()); err != nil || count() != 0 {
		t.Errorf("%v, %d customers are left", err, count())
	}
	if sum := sim.Summary(); sum.Charges == 0 || sum.DoubleCharges != 0 || sum.Unattributed != 0 || sum.Refunds == 0 || sum.DoubleRefunds != 0 || sum.StrayRefunds != 0 {
		t.Errorf("the ledger has %+v", sum)
	}
}
