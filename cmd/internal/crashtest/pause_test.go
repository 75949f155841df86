package crashtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// TestPauseEndToEnd: with a tenant paused, or everything, whatever comes over NATS and HTTP is accepted and nothing is asked of Stripe; what is stored is
// shown as paused, and the stream keeps what is beyond the workers' throttle. When it is resumed each is charged once.
func TestPauseEndToEnd(t *testing.T) {
	t.Parallel()
	for name, scope := range map[string]payments.Pause{"everything": {}, "tenant": {TenantID: tenant}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorldOf(t, breakerTimes)
			for i := range 2 {
				w.start(workerOptions{name: fmt.Sprint("worker ", i)})
			}
			addr, end := w.openDoor(w.dsn, time.Second)
			t.Cleanup(end)
			c := w.newCaller()
			w.publish(w.order("before"))
			w.rest()
			scope.Reason, scope.Actor = "the books are closed", "tester"
			if _, err := w.store.Pause(t.Context(), scope); err != nil {
				t.Fatal(err)
			}
			requests := w.sim.Summary().Requests

			const published, posted = 300, 20
			orders := w.publishMany("order", published)
			for i := range posted {
				p := w.single(fmt.Sprint("posted-", i))
				if got := c.insist(p, "", func() string { return addr }); got.status != 202 {
					t.Fatalf("the door says %d", got.status)
				}
				orders = append(orders, p.orders...)
			}
			pass(t.Context(), t, 2*time.Second) // as long as workers take to pull what they may
			stored := w.mustShowPaused()
			backlog := w.backlog()
			t.Logf("%d payments stand as paused, %d messages wait in the stream", stored, backlog)
			if stored < posted || backlog < published/3 {
				t.Errorf("%d payments are stored and %d messages wait: everything posted is to be stored, and the stream to keep the backlog", stored, backlog)
			}
			if now := w.sim.Summary().Requests; now != requests {
				t.Errorf("%d requests reached Stripe", now-requests)
			}

			if ended, err := w.store.Resume(t.Context(), scope, payments.Operation{Actor: "tester", Reason: "done"}); err != nil || !ended {
				t.Fatalf("resume: %v, %v", ended, err)
			}
			w.await("all outcomes", func() (bool, string) { // these workers have no relay for what HTTP has accepted, so there is no rest
				counts, err := w.store.CountByStatus(t.Context(), tenant)
				return counts[payments.StatusSucceeded] == len(orders)+1, fmt.Sprint(counts, err)
			})
			if now := w.sim.Summary(); now.Charges != len(orders)+1 || now.DoubleCharges != 0 {
				t.Errorf("%d charges, %d payments charged twice, want %d", now.Charges, now.DoubleCharges, len(orders)+1)
			}
			for _, o := range orders {
				p, err := w.store.Find(t.Context(), tenant, o.id())
				if err != nil || p.Status != payments.StatusSucceeded {
					t.Fatalf("%s is %s (%s), %v", o.Key, p.Status, p.Reason, err)
				}
			}
		})
	}
}

// mustShowPaused wants every payment of the tenant that has no outcome shown as paused, and returns how many there are.
func (w *world) mustShowPaused() (n int) {
	w.Helper()
	for cursor, first := "", true; first || cursor != ""; first = false {
		page, next, err := w.store.List(w.Context(), payments.ListRequest{TenantID: tenant, Limit: payments.LimitMax, Cursor: cursor})
		if err != nil {
			w.Fatal(err)
		}
		for _, p := range page {
			if p.Status.Final() {
				continue
			}
			if n++; p.Reason != payments.ReasonPaused || p.Status != payments.StatusReceived {
				w.Errorf("%s is %s (%s)", p.IdempotencyKey, p.Status, p.Reason)
			}
		}
		cursor = next
	}
	return n
}
