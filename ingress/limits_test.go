package ingress

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncepay/oncepay/payments"
)

func TestRateLimit(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(c *Config) { c.Rate, c.Burst = 2, 3 })
	for i := range 3 {
		if got := d.post("/v1/payments", "order-1", goodBody); got.status != 202 {
			t.Fatalf("%d: %d %s", i, got.status, got.body)
		}
	}
	got := d.post("/v1/payments", "order-2", goodBody)
	if got.is(t, "one too many", 429, "rate_limited"); got.header.Get("Retry-After") != "1" {
		t.Errorf("%v", got.header)
	}
	if got := d.get("/v1/payments", as(globexSecret)); got.status != 200 {
		t.Errorf("another key: %d", got.status)
	}
	for range 100 { // what is refused costs nothing
		d.get("/v1/payments").is(t, "again", 429, "rate_limited")
	}
	d.clock.advance(500 * time.Millisecond)
	if got := d.post("/v1/payments", "order-2", goodBody); got.status != 202 || d.store.stored() != 2 {
		t.Errorf("half a second later: %d", got.status)
	}
	d.get("/v1/payments", as("opk_nobody")).is(t, "no key at all", 401, "unauthorized")
	slow := newDesk(t, func(c *Config) { c.Rate = 0.1 })
	slow.get("/v1/payments")
	if got := slow.get("/v1/payments"); got.status != 429 || got.header.Get("Retry-After") != "10" {
		t.Errorf("%d %v", got.status, got.header)
	}
}

func TestRatesAreBounded(t *testing.T) {
	t.Parallel()
	r := newRates(1, 0)
	now := newFakeClock().Now()
	for i := range ratesMax {
		r.admit(time.Duration(i).String(), now)
	}
	now = now.Add(time.Minute)
	if _, ok := r.admit("another", now); !ok || len(r.byKey) != 1 {
		t.Errorf("%v, %d remembered", ok, len(r.byKey))
	}
}

// Too many accepted rows unpublished: nothing more is accepted, what is stored is shown, and one count in 250 ms serves all.
func TestBacklog(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	count, asked, fail := int64(8), 0, error(nil)
	set := func(n int64, err error) {
		mu.Lock()
		defer mu.Unlock()
		count, fail = n, err
	}
	d := newDesk(t, func(c *Config) {
		c.UnpublishedMax = 12
		c.Unpublished = func(context.Context) (int64, error) {
			mu.Lock()
			defer mu.Unlock()
			asked++
			return count, fail
		}
	})
	for range 20 {
		if got := d.post("/v1/payments", "order-1", goodBody); got.status != 202 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	if got := d.post("/v1/batches", "old", goodBatch); got.status != 202 {
		t.Fatalf("beside 8 of 12: %d %s", got.status, got.body)
	}
	set(12, nil)
	d.clock.advance(250 * time.Millisecond)
	d.post("/v1/payments", "order-2", goodBody).is(t, "full", 503, "unavailable")
	d.post("/v1/batches", "run", goodBatch).is(t, "full", 503, "unavailable")
	if got := d.post("/v1/payments", "order-1", goodBody); got.status != 202 || got.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("a repeat while it is full: %d %s", got.status, got.body)
	}
	if got := d.post("/v1/batches", "old", goodBatch); got.status != 202 || got.header.Get("Idempotent-Replayed") != "true" || got.header.Get("Location") == "" {
		t.Errorf("a batch's repeat while it is full: %d %s", got.status, got.body)
	}
	d.post("/v1/batches", "old", strings.Replace(goodBatch, "100", "101", 1)).is(t, "full, and another batch", 422, "idempotency_key_reused")
	d.post("/v1/batches", "run", strings.Replace(goodBatch, "100", "0", 1)).is(t, "full, and an invalid batch", 400, "invalid_request")
	d.post("/v1/batches", "order-1", goodBatch).is(t, "full, and a payment's key", 422, "idempotency_key_reused")
	d.post("/v1/payments", "order-1", strings.Replace(goodBody, "9900", "9901", 1)).is(t, "full, and another request", 422, "idempotency_key_reused")
	d.post("/v1/payments", "order-2", `{"amount":0}`).is(t, "full and invalid", 400, "invalid_request")
	if got := d.get("/v1/payments"); got.status != 200 || asked != 2 || d.store.stored() != 4 {
		t.Errorf("%d, asked %d times", got.status, asked)
	}
	set(0, errors.New("away"))
	d.clock.advance(time.Second)
	d.post("/v1/payments", "order-2", goodBody).is(t, "no newer count", 503, "unavailable")
	set(0, nil)
	d.clock.advance(time.Second)
	if got := d.post("/v1/payments", "order-2", goodBody); got.status != 202 || asked != 4 {
		t.Errorf("room again: %d, asked %d times", got.status, asked)
	}
}

// A file whose copies cannot be published, as with NATS away, is held up before it has taken the room of everybody's single payments.
func TestBatchesLeaveRoomForPayments(t *testing.T) {
	t.Parallel()
	for unpublished, batches := range map[int64]int{74: 202, 75: 503, 99: 503} {
		d := newDesk(t, func(c *Config) {
			c.UnpublishedMax = 100
			c.Unpublished = func(context.Context) (int64, error) { return unpublished, nil }
		})
		if got := d.post("/v1/batches", "run", goodBatch); got.status != batches || batches == 503 && got.header.Get("Retry-After") == "" {
			t.Errorf("a batch beside %d: %d %s", unpublished, got.status, got.body)
		}
		if got := d.post("/v1/payments", "order-1", goodBody); got.status != 202 {
			t.Errorf("a payment beside %d: %d %s", unpublished, got.status, got.body)
		}
	}
}

// A client that goes away does not take the count with it that it happened to begin.
func TestCountOutlivesItsRequest(t *testing.T) {
	t.Parallel()
	b := newBacklog(Config{Clock: newFakeClock(), UnpublishedMax: 10, Unpublished: func(ctx context.Context) (int64, error) { return 7, ctx.Err() }})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n := b.now(ctx); n != 7 {
		t.Errorf("%d", n)
	}
}

// A count that hangs holds up one request, not all.
func TestSlowCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := false
		b := newBacklog(Config{Clock: systemClock{}, UnpublishedMax: 10, Unpublished: func(ctx context.Context) (int64, error) {
			if slow {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return 1, nil
		}})
		if n := b.now(t.Context()); n != 1 {
			t.Errorf("%d", n)
		}
		time.Sleep(backlogFor)
		slow = true
		go b.now(t.Context())
		synctest.Wait()
		begun := time.Now()
		if n := b.now(t.Context()); n != 1 || time.Since(begun) != 0 {
			t.Errorf("%d after %v", n, time.Since(begun))
		}
		time.Sleep(backlogTimeout)
	})
}

func TestInFlightIsBounded(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for range inFlightMax {
		d.api.inFlight <- struct{}{}
	}
	d.get("/v1/payments").is(t, "full", 503, "unavailable")
	<-d.api.inFlight
	if got := d.get("/v1/payments"); got.status != 200 || len(d.api.inFlight) != inFlightMax-1 {
		t.Errorf("%d, %d in flight", got.status, len(d.api.inFlight))
	}
	for range batchesMax {
		d.api.batches <- struct{}{}
	}
	d.post("/v1/batches", "run", goodBatch).is(t, "full of batches", 503, "unavailable")
	if got := d.post("/v1/payments", "order-1", goodBody); got.status != 202 {
		t.Errorf("a payment beside them: %d", got.status)
	}
}

// The documentation is long and open to everybody: clients that ask for it and read nothing must not hold the places of payments.
func TestUnreadDocumentationHoldsNoPlace(t *testing.T) {
	t.Parallel()
	held, gate := make(chan struct{}), make(chan struct{})
	d := newDesk(t, func(c *Config) {
		c.Docs = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			held <- struct{}{}
			<-gate // as a Write does whose client does not read
			answering(w).send(200, mediaJSON, []byte("{}"))
		})
	})
	var group sync.WaitGroup
	group.Go(func() { d.get("/docs") })
	<-held
	if n := len(d.api.inFlight); n != 0 {
		t.Errorf("it holds %d places", n)
	}
	close(gate)
	group.Wait()
	if n := len(d.api.inFlight); n != 0 {
		t.Errorf("%d places are held afterwards", n)
	}
}

// A store that has gone silent without an error, as a PostgreSQL behind a dead network, is a 503 in time for a client that still listens; whatever is
// asked of it.
func TestSilentStore(t *testing.T) {
	t.Parallel()
	id, batch := payments.NewID("acme", "order-1").Format(payments.KindCharge), payments.NewID("acme", "run").Format(payments.KindBatch)
	for _, c := range []struct{ method, target, body string }{
		{"POST", "/v1/payments", goodBody}, {"POST", "/v1/batches", goodBatch}, {"GET", "/v1/payments", ""}, {"GET", "/v1/payments/" + id, ""},
		{"GET", "/v1/payments/" + id + "/events", ""}, {"GET", "/v1/batches", ""}, {"GET", "/v1/batches/" + batch, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t)
			d.get("/v1/payments") // the API key is known from now on
			d.store.setBefore(func(ctx context.Context, verb string) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(time.Hour):
					return nil
				}
			})
			begun := time.Now()
			got := d.send(newRequest(c.method, c.target, c.body, with("Idempotency-Key", "k")))
			got.is(t, c.method+" "+c.target, 503, "unavailable")
			if took := time.Since(begun); took != answerWithin || got.header.Get("Retry-After") == "" {
				t.Errorf("%s %s: after %v, Retry-After %q", c.method, c.target, took, got.header.Get("Retry-After"))
			}
		})
	}
}

// One caller, whose requests all hang, does not take everybody's places.
func TestOneKeyDoesNotTakeAll(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.api.crowd.most = longShare
	gate, held := make(chan struct{}), make(chan struct{}, 2)
	d.store.setBefore(func(_ context.Context, verb string) error {
		if verb == "admit" {
			held <- struct{}{}
			<-gate
		}
		return nil
	})
	var group sync.WaitGroup
	for i := range 2 {
		group.Go(func() { d.post("/v1/payments", "order-"+string(rune('a'+i)), goodBody) })
		<-held
	}
	d.get("/v1/payments").is(t, "a list, of more shares than are left", 429, "rate_limited")
	d.get("/v1/payments/"+payments.NewID("acme", "order-z").String()).is(t, "a look, of one share", 404, "not_found")
	if got := d.get("/v1/payments", as(globexSecret)); got.status != 200 {
		t.Errorf("another caller: %d", got.status)
	}
	close(gate)
	group.Wait()
	if got := d.get("/v1/payments"); got.status != 200 || len(d.api.crowd.byKey) != 0 {
		t.Errorf("afterwards: %d, %v", got.status, d.api.crowd.byKey)
	}
}

func TestObserver(t *testing.T) {
	t.Parallel()
	type seen struct {
		route, method string
		status        int
	}
	var told []seen
	d := newDesk(t, func(c *Config) {
		c.Observer.Request = func(route, method string, status int, took time.Duration) {
			if told = append(told, seen{route, method, status}); took != 0 {
				t.Errorf("took %v", took)
			}
		}
	})
	d.post("/v1/payments", "order-1", goodBody)
	d.get("/v1/payments/pay_1")
	d.get("/secret")
	d.send(newRequest("BREW", "/v1/payments", "", with("Idempotency-Key", "k")))
	d.send(newRequest("POST", "/v1/batches", goodBatch))
	want := []seen{{"/v1/payments", "POST", 202}, {"/v1/payments/{id}", "GET", 404}, {"other", "GET", 404}, {"/v1/payments", "OTHER", 405}, {"/v1/batches", "POST", 400}}
	for i, w := range want {
		if i >= len(told) || told[i] != w {
			t.Fatalf("%+v, want %+v", told, want)
		}
	}
}

func TestKindsAreWhole(t *testing.T) {
	t.Parallel()
	seen := map[Code]bool{}
	for _, k := range Kinds() {
		if seen[k.Code] || k.Title == "" || k.Status < 400 || k.Status > 599 || kindOf(k.Code) != k {
			t.Errorf("%+v", k)
		}
		seen[k.Code] = true
	}
	for _, code := range []Code{CodeIdempotencyRequired, CodeIdempotencyInvalid, CodeIdempotencyReserved, CodeCardNumber, CodeInvalidRequest, CodeUnauthorized, CodeSpendCapExceeded, CodeForbidden, CodeNotFound,
		CodeInvalidState, CodePayloadTooLarge, CodeIdempotencyReused, CodeAmountExceedsAvailable, CodeRateLimited, CodeUnavailable, CodeMethodNotAllowed, CodeInternal} {
		if !seen[code] {
			t.Errorf("%s has no row", code)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	s := newFakeStore(clock)
	good := Config{Store: s, FollowUps: s, Batches: s, Reader: s, FollowUpReader: s, Keys: s, Clock: clock}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Config){
		"store": func(c *Config) { c.Store = nil }, "batches": func(c *Config) { c.Batches = nil }, "reader": func(c *Config) { c.Reader = nil }, "keys": func(c *Config) { c.Keys = nil },
		"follow-ups": func(c *Config) { c.FollowUps = nil }, "their reader": func(c *Config) { c.FollowUpReader = nil },
		"clock": func(c *Config) { c.Clock = nil }, "rate": func(c *Config) { c.Rate = -1 }, "burst": func(c *Config) { c.Burst = -1 },
		"unpublished": func(c *Config) { c.Unpublished = func(context.Context) (int64, error) { return 0, nil } },
	} {
		cfg := good
		if change(&cfg); true {
			if _, err := New(cfg); err == nil {
				t.Errorf("%s: accepted", name)
			}
		}
	}
}

var _ payments.Clock = systemClock{}
