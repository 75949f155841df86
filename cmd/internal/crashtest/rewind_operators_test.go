package crashtest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/oncepay/oncepay/consumer/deadletter"
	"github.com/oncepay/oncepay/payments"
)

// TestNobodyEndsWhatIsBeingRewound: a backup knows two payments that were not sent yet, one that waits and one that was given up. Both are charged, the
// backup is put in place, and an operator, who sees them untouched, gives them up while the rewind goes on: after it has listed Stripe.
func TestNobodyEndsWhatIsBeingRewound(t *testing.T) {
	t.Parallel()
	takeTurn(t)
	w := newWorld(t)
	ctx := context.Background()
	op := payments.Operation{Actor: "operator", Reason: "looks untouched"}
	waits, stalls := w.order("waits"), w.order("stalls")
	stalled := stalls.id()
	var refused atomic.Int64
	meddle := func(s payments.RewindStep) (dies bool) {
		if s == payments.RewindSettle || s == payments.RewindStripe { // what ends before the list is read is put right by it
			return false
		}
		if _, err := w.store.Resolve(ctx, tenant, waits.id(), payments.StatusCanceled, op); payments.ErrorCode(err) == payments.CodeInvalid {
			refused.Add(1)
		}
		if _, err := w.store.Discard(ctx, payments.LetterFilter{PaymentID: &stalled}, 0, op); payments.ErrorCode(err) == payments.CodeInvalid {
			refused.Add(1)
		}
		return false
	}
	w.publish(stalls)
	digger := w.start(workerOptions{name: "digger", triesMax: 1, marked: true, onRewind: meddle, gateway: func(g payments.Gateway) payments.Gateway { return unreachable{g} }})
	w.rest()
	if _, err := w.store.Pause(ctx, payments.Pause{TenantID: tenant, Actor: "operator", Reason: "a while"}); err != nil {
		t.Fatal(err)
	}
	w.publish(waits)
	w.await("both stand as the backup is to have them", func() (bool, string) {
		a, b := w.status(waits.id()), w.status(stalls.id())
		return a == payments.StatusReceived && b == payments.StatusStalled, string(a) + " " + string(b)
	})
	digger.marked()
	if err := digger.stop(); err != nil {
		t.Fatal(err)
	}
	server, since := w.server(), w.clock.Now()
	backup := server.backUp()
	v := w.start(workerOptions{name: "worker", marked: true, replays: func(deadletter.Step) bool { return false }, onRewind: meddle})
	w.resumeAll(ctx, op)
	w.mustComplete(w.replay())
	if n := len(w.sim.Ledger().Charges); n != 2 {
		t.Fatalf("%d charges before the restore, want 2", n)
	}
	v.marked()
	server.restore(backup)
	w.await("the hold", func() (bool, string) { return v.mark.Held() != "", "not held" })
	w.await("the test's own connection to what was restored", func() (bool, string) {
		_, err := w.store.Mark(ctx)
		return err == nil, fmt.Sprint(err)
	})
	w.rewind(since)
	w.resumeAll(ctx, op)
	w.rest()
	for _, o := range []order{waits, stalls} {
		if s := w.status(o.id()); s != payments.StatusSucceeded {
			t.Errorf("%s was charged, and is %s", o.Key, s)
		}
	}
	if n := len(w.sim.Ledger().Charges); n != 2 || refused.Load() == 0 {
		t.Errorf("%d charges, want 2; %d refusals", n, refused.Load())
	}
}

func (w *world) resumeAll(ctx context.Context, op payments.Operation) {
	w.Helper()
	for _, scope := range []string{tenant, ""} {
		if _, err := w.store.Resume(ctx, payments.Pause{TenantID: scope}, op); err != nil {
			w.Fatal(err)
		}
	}
}
