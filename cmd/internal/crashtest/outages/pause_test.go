package outages

import (
	"fmt"
	"testing"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
)

// TestPauseEndToEnd: with a tenant paused, or everything, whatever comes over NATS and HTTP is accepted and nothing is asked of Stripe; what is stored is
// shown as paused, and the stream keeps what is beyond the workers' throttle. When it is resumed each is charged once.
func TestPauseEndToEnd(t *testing.T) {
	t.Parallel()
	for name, scope := range map[string]payments.Pause{"everything": {}, "tenant": {TenantID: world.Tenant}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world.NewOf(t, world.BreakerTimes)
			for i := range 2 {
				w.Start(world.WorkerOptions{Name: fmt.Sprint("worker ", i)})
			}
			addr, end := w.OpenDoor(w.DSN, time.Second)
			t.Cleanup(end)
			c := w.NewCaller()
			w.Publish(w.Order("before"))
			w.Rest()
			scope.Reason, scope.Actor = "the books are closed", "tester"
			if _, err := w.Store.Pause(t.Context(), scope); err != nil {
				t.Fatal(err)
			}
			requests := w.Sim.Summary().Requests

			const published, posted = 300, 20
			orders := w.PublishMany("order", published)
			for i := range posted {
				p := w.Single(fmt.Sprint("posted-", i))
				if got := c.Insist(p, "", func() string { return addr }); got.Status != 202 {
					t.Fatalf("the door says %d", got.Status)
				}
				orders = append(orders, p.Orders...)
			}
			world.Pass(t.Context(), t, 2*time.Second) // as long as workers take to pull what they may
			stored := mustShowPaused(w)
			backlog := w.Backlog()
			t.Logf("%d payments stand as paused, %d messages wait in the stream", stored, backlog)
			if stored < posted || backlog < published/3 {
				t.Errorf("%d payments are stored and %d messages wait: everything posted is to be stored, and the stream to keep the backlog", stored, backlog)
			}
			if now := w.Sim.Summary().Requests; now != requests {
				t.Errorf("%d requests reached Stripe", now-requests)
			}

			if ended, err := w.Store.Resume(t.Context(), scope, payments.Operation{Actor: "tester", Reason: "done"}); err != nil || !ended {
				t.Fatalf("resume: %v, %v", ended, err)
			}
			w.Await("all outcomes", func() (bool, string) { // these workers have no relay for what HTTP has accepted, so there is no rest
				counts, err := w.Store.CountByStatus(t.Context(), world.Tenant)
				return counts[payments.StatusSucceeded] == len(orders)+1, fmt.Sprint(counts, err)
			})
			if now := w.Sim.Summary(); now.Charges != len(orders)+1 || now.DoubleCharges != 0 {
				t.Errorf("%d charges, %d payments charged twice, want %d", now.Charges, now.DoubleCharges, len(orders)+1)
			}
			for _, o := range orders {
				p, err := w.Store.Find(t.Context(), world.Tenant, o.ID())
				if err != nil || p.Status != payments.StatusSucceeded {
					t.Fatalf("%s is %s (%s), %v", o.Key, p.Status, p.Reason, err)
				}
			}
		})
	}
}

// mustShowPaused wants every payment of the tenant that has no outcome shown as paused, and returns how many there are.
func mustShowPaused(w *world.World) (n int) {
	w.Helper()
	for cursor, first := "", true; first || cursor != ""; first = false {
		page, next, err := w.Store.List(w.Context(), payments.ListRequest{TenantID: world.Tenant, Limit: payments.LimitMax, Cursor: cursor})
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
