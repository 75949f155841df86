package ingress

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// waitDesk is a desk in virtual time whose Run runs until stop.
func waitDesk(t *testing.T) (d *desk, stop func()) {
	t.Helper()
	d = newDesk(t, func(c *Config) { c.Clock = systemClock{} })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.api.Run(ctx) }()
	synctest.Wait()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return d, stop
}

// The outcomes of Prefer: wait, by what becomes of the payment after a second.
func TestWaitOutcomes(t *testing.T) {
	t.Parallel()
	for becomes, status := range map[payments.Status]int{
		payments.StatusSucceeded: 200, payments.StatusFailed: 200, payments.StatusRejected: 200, payments.StatusExpired: 200, payments.StatusCanceled: 200,
		payments.StatusRequiresCapture: 200, payments.StatusRequiresAction: 200, payments.StatusPending: 200,
		payments.StatusReceived: 202, payments.StatusWaiting: 202, payments.StatusUnknown: 202, payments.StatusNeedsReview: 202, payments.StatusStalled: 202,
	} {
		t.Run(string(becomes), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d, stop := waitDesk(t)
				go func() {
					time.Sleep(time.Second)
					d.store.set("acme", "order-1", becomes)
				}()
				begun := time.Now()
				got := d.post("/v1/payments", "order-1", goodBody, with("Prefer", "respond-async", "Prefer", "wait=3"))
				took := time.Since(begun)
				if got.status != status || got.member("status") != string(becomes) || got.header.Get("Preference-Applied") != "wait=3" || got.header.Get("Location") == "" {
					t.Errorf("%d %v %s", got.status, got.header, got.body)
				}
				if status == 200 && took > 1100*time.Millisecond || status == 202 && took != 3*time.Second {
					t.Errorf("it took %v", took)
				}
				begun = time.Now()
				again := d.post("/v1/payments", "order-1", goodBody, with("Prefer", "wait=2"))
				if again.status != status || again.header.Get("Idempotent-Replayed") != "true" || status == 200 && time.Since(begun) != 0 {
					t.Errorf("repeated: %d after %v", again.status, time.Since(begun))
				}
				shown := d.get(got.header.Get("Location"), with("Prefer", "wait=1"))
				if shown.status != 200 || shown.header.Get("Preference-Applied") != "wait=1" {
					t.Errorf("shown: %d %v", shown.status, shown.header)
				}
				if plain := d.post("/v1/payments", "order-1", goodBody); plain.status != 202 || plain.header.Get("Preference-Applied") != "" {
					t.Errorf("without the preference: %d", plain.status)
				}
				stop()
				if d.api.waiting.count != 0 || len(d.api.waiting.watched) != 0 {
					t.Error("somebody is still waited for")
				}
			})
		})
	}
}

// A repeat attaches to the original; all who wait for one payment are one look, and no look is made when nobody waits.
func TestWaitersShareLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, stop := waitDesk(t)
		defer stop()
		var wg sync.WaitGroup
		for i := range 300 {
			wg.Go(func() {
				key := "order-" + strconv.Itoa(i%3)
				if got := d.post("/v1/payments", key, goodBody, with("Prefer", "wait=30")); got.status != 200 || got.member("idempotency_key") != key {
					t.Errorf("%d %s", got.status, got.body)
				}
			})
		}
		synctest.Wait()
		if n := len(d.api.inFlight) + len(d.api.crowd.byKey); n != 0 {
			t.Errorf("%d places are held by requests that only wait", n)
		}
		time.Sleep(time.Second)
		if n := d.store.count("find_many"); n < 15 || n > 21 || d.store.count("find") != 0 {
			t.Errorf("%d looks in a second", n)
		}
		for i := range 3 {
			d.store.set("acme", "order-"+strconv.Itoa(i), payments.StatusSucceeded)
		}
		wg.Wait()
		looks := d.store.count("find_many")
		time.Sleep(time.Minute)
		if n := d.store.count("find_many"); n > looks+1 {
			t.Errorf("%d looks for nobody", n-looks)
		}
	})
}

// PostgreSQL away meanwhile: they go on waiting, and are answered with what is known.
func TestWaitWhileAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, stop := waitDesk(t)
		defer stop()
		d.store.setBefore(func(_ context.Context, verb string) error {
			if verb == "find_many" {
				return errAway
			}
			return nil
		})
		if got := d.post("/v1/payments", "order-1", goodBody, with("Prefer", "wait=2")); got.status != 202 || got.member("status") != "received" {
			t.Errorf("%d %s", got.status, got.body)
		}
		go func() {
			time.Sleep(time.Second)
			d.store.set("acme", "order-1", payments.StatusSucceeded)
			d.store.setBefore(nil)
		}()
		if got := d.post("/v1/payments", "order-1", goodBody, with("Prefer", "wait=2")); got.status != 200 || got.member("status") != "succeeded" {
			t.Errorf("back: %d %s", got.status, got.body)
		}
	})
}

// A shutdown answers those who wait, and nobody waits before Run, after it, or beyond the bound.
func TestWaitersAreLetGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		idle := newDesk(t, func(c *Config) { c.Clock = systemClock{} })
		begun := time.Now()
		if got := idle.post("/v1/payments", "order-1", goodBody, with("Prefer", "wait=30")); got.status != 202 || got.header.Get("Preference-Applied") != "" || time.Since(begun) != 0 {
			t.Errorf("nobody looks: %d after %v", got.status, time.Since(begun))
		}

		d, stop := waitDesk(t)
		d.api.waiting.most = 2
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				if got := d.post("/v1/payments", "order-"+strconv.Itoa(i), goodBody, with("Prefer", "wait=30")); got.status != 202 || got.header.Get("Preference-Applied") != "" {
					t.Errorf("%d %v", got.status, got.header)
				}
			})
		}
		synctest.Wait()
		if got := d.post("/v1/payments", "order-3", goodBody, with("Prefer", "wait=30")); got.status != 202 || time.Since(begun) != 0 {
			t.Errorf("one too many: %d after %v", got.status, time.Since(begun))
		}
		time.Sleep(time.Second)
		stop()
		wg.Wait()
		if took := time.Since(begun); took != time.Second {
			t.Errorf("they were let go after %v", took)
		}
		if got := d.post("/v1/payments", "order-4", goodBody, with("Prefer", "wait=30")); got.status != 202 || time.Since(begun) != time.Second {
			t.Errorf("afterwards: %d", got.status)
		}
		if err := d.api.Run(t.Context()); err == nil {
			t.Error("Run ran twice")
		}
	})
}

// A client that goes away while it waits frees its place, and takes nothing back.
func TestWaitingClientGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, stop := waitDesk(t)
		defer stop()
		ctx, cancel := context.WithCancel(t.Context())
		answered := make(chan int, 1)
		go func() {
			r := newRequest(http.MethodPost, "/v1/payments", goodBody, with("Idempotency-Key", "order-1", "Prefer", "wait=30"))
			answered <- d.send(r.WithContext(ctx)).status
		}()
		synctest.Wait()
		cancel()
		if status := <-answered; status != 202 {
			t.Errorf("%d", status)
		}
		if d.api.waiting.count != 0 || d.store.stored() != 1 {
			t.Errorf("%d wait, %d rows", d.api.waiting.count, d.store.stored())
		}
	})
}
