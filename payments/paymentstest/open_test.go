package paymentstest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/migrations"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/payments/stripe"
	"github.com/oncepay/oncepay/payments/stripesim"
)

var conformanceTenants = [3]string{"acme", "globex", "initech"}

// openSimulator gives the suite a sound Gateway on a simulator of its own.
func openSimulator(t *testing.T) paymentstest.Stripe {
	t.Helper()
	sim, err := stripesim.New(stripesim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(sim)
	t.Cleanup(func() {
		web.Close()
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
	})
	g, err := stripe.New(t.Context(), stripe.Options{
		Key: "sk_test_conformance", URL: web.URL, Namespace: "oncepay", Timeout: 10 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return paymentstest.Stripe{
		Gateway: g, FollowUps: g, Namespace: "oncepay", RequestVersion: stripe.RequestVersion, TenantID: "acme", Customer: "cus_1", Now: sim.Now,
		Posts: func() int { return int(sim.Summary().Posts) },
		Post:  func(path, form string) (string, error) { return postBeside(t.Context(), web.URL+path, form) },
		Body:  func(i payments.Intent) (string, error) { return stripe.Body(stripe.RequestVersion, "oncepay", i) },
	}
}

// postBeside is a POST past the Gateway.
func postBeside(ctx context.Context, url, form string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(form))
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer sk_test_conformance")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}).Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var object struct{ ID string }
	err = json.NewDecoder(resp.Body).Decode(&object)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("POST %s: answered %d", url, resp.StatusCode)
	}
	return object.ID, err
}

// movedClock is a clock that the suite moves.
type movedClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *movedClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *movedClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// openDatabase gives the suite a sound Store on a database of its own.
func openDatabase(t *testing.T) paymentstest.Database {
	t.Helper()
	dsn := devstacktest.Database(t, migrations.Up)
	clock := &movedClock{now: time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)}
	open := func() *postgres.Store {
		s, err := postgres.Open(context.Background(), dsn, postgres.Options{Clock: clock, PoolSize: 4, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := s.Close(ctx); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
		return s
	}
	s := open()
	for _, tenant := range conformanceTenants {
		if _, err := s.CreateTenant(t.Context(), postgres.Tenant{ID: tenant}); err != nil {
			t.Fatal(err)
		}
	}
	return paymentstest.Database{
		Store: s, Outbox: s, Batches: s, Reader: s, FollowUps: s, Intents: s.Intents, Another: func() payments.Store { return open() }, Now: clock.Now, Advance: clock.Advance, Tenants: conformanceTenants,
		Violations: func() []string {
			list, err := s.TicketViolations(context.Background())
			if err != nil {
				t.Errorf("TicketViolations: %v", err)
			}
			var found []string
			for _, v := range list {
				found = append(found, fmt.Sprintf("%+v", v))
			}
			return found
		},
	}
}
