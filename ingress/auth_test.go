package ingress

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// One answer to everything that is no good key, so that nobody learns which keys there are.
func TestUnauthorized(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.store.addKey("opk_gone", "acme", payments.Scopes()...)
	d.store.revoke("opk_gone")
	old := d.store.addKey("opk_old", "acme", payments.Scopes()...)
	old.ExpiresAt = d.clock.Now()
	d.store.secrets["opk_old"] = old
	var first string
	for name, lines := range map[string][]string{
		"missing": nil, "blank": {""}, "scheme alone": {"Bearer"}, "no secret": {"Bearer "}, "basic": {"Basic " + acmeSecret}, "no scheme": {acmeSecret},
		"two lines": {"Bearer " + acmeSecret, "Bearer " + acmeSecret}, "two secrets": {"Bearer " + acmeSecret + " " + acmeSecret}, "unknown": {"Bearer opk_nobody"},
		"revoked": {"Bearer opk_gone"}, "expired": {"Bearer opk_old"}, "not ours": {"Bearer sk_acme"}, "long": {"Bearer opk_" + strings.Repeat("a", 300)},
		"case": {"Bearer OPK_ACME"}, "quoted": {`Bearer "opk_acme"`}, "zero": {"Bearer opk_acme\x00"}, "comma": {"Bearer opk_acme,"},
	} {
		r := newRequest("GET", "/v1/payments", "", func(r *http.Request) { r.Header["Authorization"] = lines })
		got := d.send(r)
		got.is(t, name, 401, "unauthorized")
		if first == "" {
			first = string(got.body)
		}
		if string(got.body) != first {
			t.Errorf("%s is told apart: %s", name, got.body)
		}
	}
	if n := d.store.count("key"); n != 3 {
		t.Errorf("%d look-ups: only what could be a key is looked up", n)
	}
	for _, line := range []string{"Bearer " + acmeSecret, "bearer " + acmeSecret, "BEARER  " + acmeSecret} {
		if got := d.send(newRequest("GET", "/v1/payments", "", func(r *http.Request) { r.Header.Set("Authorization", line) })); got.status != 200 {
			t.Errorf("%q: %d", line, got.status)
		}
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for i, rt := range Routes() {
		secret := "opk_only" + string(rune('a'+i))
		d.store.addKey(secret, "acme", rt.Scope)
		target := strings.Replace(rt.Path, "{id}", "pay_0", 1)
		d.store.addKey(secret+"x", "acme", without(rt.Scope)...)
		got := d.send(newRequest(rt.Method, target, "", as(secret+"x"), with("Idempotency-Key", "k")))
		if got.is(t, rt.Method+" "+rt.Path, 403, "forbidden"); !strings.Contains(got.member("detail").(string), string(rt.Scope)) {
			t.Errorf("it does not name the scope: %s", got.body)
		}
		if got := d.send(newRequest(rt.Method, target, "", as(secret), with("Idempotency-Key", "k"))); got.status == 403 || got.status == 401 {
			t.Errorf("%s %s with its scope: %d", rt.Method, rt.Path, got.status)
		}
	}
	d.store.addKey("opk_none", "acme")
	d.get("/v1/payments", as("opk_none")).is(t, "no scopes", 403, "forbidden")
}

func without(scope payments.Scope) (rest []payments.Scope) {
	for _, s := range payments.Scopes() {
		if s != scope {
			rest = append(rest, s)
		}
	}
	return rest
}

// A revoked key is refused within a second, and the store is asked twice a second at most.
func TestRevocationWithinASecond(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for range 100 {
		if got := d.get("/v1/payments"); got.status != 200 {
			t.Fatalf("%d", got.status)
		}
	}
	if n := d.store.count("key"); n != 1 {
		t.Errorf("%d look-ups in a moment", n)
	}
	d.store.revoke(acmeSecret)
	d.clock.advance(501 * time.Millisecond)
	d.get("/v1/payments").is(t, "revoked", 401, "unauthorized")
	for range 100 {
		d.get("/v1/payments").is(t, "revoked", 401, "unauthorized")
	}
	if n := d.store.count("key"); n != 2 {
		t.Errorf("%d look-ups", n)
	}
	// A key that is made is good within a second too.
	d.get("/v1/payments", as("opk_new")).is(t, "not made yet", 401, "unauthorized")
	d.store.addKey("opk_new", "acme", payments.ScopePaymentsRead)
	d.clock.advance(501 * time.Millisecond)
	if got := d.get("/v1/payments", as("opk_new")); got.status != 200 {
		t.Errorf("new: %d", got.status)
	}
}

// A key's expiry does not wait for the next look-up; a clock that is set back does not make old knowledge new.
func TestExpiryAndClock(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	k := d.store.addKey("opk_short", "acme", payments.Scopes()...)
	k.ExpiresAt = d.clock.Now().Add(100 * time.Millisecond)
	d.store.secrets["opk_short"] = k
	if got := d.get("/v1/payments", as("opk_short")); got.status != 200 {
		t.Errorf("%d", got.status)
	}
	d.clock.advance(100 * time.Millisecond)
	d.get("/v1/payments", as("opk_short")).is(t, "expired", 401, "unauthorized")
	d.get("/v1/payments")
	d.store.revoke(acmeSecret)
	d.clock.advance(-time.Hour)
	d.get("/v1/payments").is(t, "revoked, clock set back", 401, "unauthorized")
}

func TestKeysAwayIsNotUnauthorized(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.store.setBefore(func(context.Context, string) error { return errAway })
	d.get("/v1/payments").is(t, "away", 503, "unavailable")
	d.store.setBefore(nil)
	if got := d.get("/v1/payments"); got.status != 200 {
		t.Errorf("back: %d", got.status)
	}
	d.clock.advance(time.Second)
	d.store.setBefore(func(context.Context, string) error { return payments.Errorf(payments.CodeInternal, "broken") })
	if got := d.get("/v1/payments"); got.status != 500 || strings.Contains(string(got.body), "broken") || !strings.Contains(d.log.String(), got.header.Get("Request-Id")) {
		t.Errorf("broken: %d %s; %s", got.status, got.body, d.log)
	}
}

// Requests that come together share one look-up, whoever of them gives up; a look-up that hangs is not joined for ever.
func TestKeyLookUpIsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, func(c *Config) { c.Clock = systemClock{} })
		gate := make(chan struct{})
		d.store.setBefore(func(ctx context.Context, verb string) error {
			if verb == "key" {
				select {
				case <-gate:
				case <-ctx.Done():
					return errAway
				}
			}
			return nil
		})
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		statuses := make([]int, 50)
		for i := range statuses {
			wg.Go(func() {
				r := newRequest("GET", "/v1/payments", "")
				if i%2 == 0 {
					r = r.WithContext(ctx)
				}
				statuses[i] = d.send(r).status
			})
			synctest.Wait() // the first, who begins the look-up, will give up
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		if n := d.store.count("key"); n != 1 {
			t.Errorf("%d look-ups", n)
		}
		time.Sleep(keyFor + time.Millisecond)
		wg.Go(func() { d.get("/v1/payments") })
		synctest.Wait()
		if n := d.store.count("key"); n != 2 {
			t.Errorf("%d look-ups: a hanging one was joined too late", n)
		}
		close(gate)
		wg.Wait()
		for i, s := range statuses {
			if i%2 == 1 && s != 200 {
				t.Errorf("%d: %d", i, s)
			}
		}
	})
}

// Whoever tries secrets neither fills the memory nor keeps good keys from being read.
func TestGuessedSecrets(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	store := newFakeStore(clock)
	store.addKey(acmeSecret, "acme", payments.Scopes()...)
	ring := newKeyring(store, clock)
	if _, err := ring.find(t.Context(), acmeSecret); err != nil {
		t.Fatal(err)
	}
	for i := range 2*keysMax + 5 {
		if _, err := ring.find(t.Context(), "opk_guess"+strings.Repeat("x", i%7)+time.Duration(i).String()); payments.ErrorCode(err) != payments.CodeNotFound {
			t.Fatal(err)
		}
	}
	if len(ring.bad) > keysMax || len(ring.good) != 1 || len(ring.reading) != 0 {
		t.Errorf("%d bad, %d good, %d being read", len(ring.bad), len(ring.good), len(ring.reading))
	}
	for range keyReads { // all places of unknown secrets are taken
		ring.reads <- struct{}{}
	}
	clock.advance(time.Second)
	if _, err := ring.find(t.Context(), acmeSecret); err != nil {
		t.Errorf("a key that was good: %v", err)
	}
	clock.advance(time.Second)
	for range keyReads {
		<-ring.reads
	}
	if _, err := ring.find(t.Context(), "opk_guess"); payments.ErrorCode(err) != payments.CodeNotFound || len(ring.bad) > keysMax {
		t.Errorf("%v, %d bad", err, len(ring.bad))
	}
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }
