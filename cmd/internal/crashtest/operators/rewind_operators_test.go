package operators

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/consumer/deadletter"
	"github.com/oncepay/oncepay/payments"
)

// TestNobodyEndsWhatIsBeingRewound: a backup knows two payments that were not sent yet, one that waits and one that was given up. Both are charged, the
// backup is put in place, and an operator, who sees them untouched, gives them up while the rewind goes on: after it has listed Stripe.
func TestNobodyEndsWhatIsBeingRewound(t *testing.T) {
	t.Parallel()
	world.TakeTurn(t)
	w := world.New(t)
	ctx := context.Background()
	op := payments.Operation{Actor: "operator", Reason: "looks untouched"}
	waits, stalls := w.Order("waits"), w.Order("stalls")
	stalled := stalls.ID()
	var refused atomic.Int64
	meddle := func(s payments.RewindStep) (dies bool) {
		if s == payments.RewindSettle || s == payments.RewindStripe { // what ends before the list is read is put right by it
			return false
		}
		if _, err := w.Store.Resolve(ctx, world.Tenant, waits.ID(), payments.Decision{As: payments.StatusCanceled}, op); payments.ErrorCode(err) == payments.CodeInvalid {
			refused.Add(1)
		}
		if _, err := w.Store.Discard(ctx, payments.LetterFilter{PaymentID: &stalled}, 0, op); payments.ErrorCode(err) == payments.CodeInvalid {
			refused.Add(1)
		}
		return false
	}
	w.Publish(stalls)
	digger := w.Start(world.WorkerOptions{Name: "digger", TriesMax: 1, Marked: true, OnRewind: meddle, Gateway: func(g payments.Gateway) payments.Gateway { return world.Unreachable{Gateway: g} }})
	w.Rest()
	if _, err := w.Store.Pause(ctx, payments.Pause{TenantID: world.Tenant, Actor: "operator", Reason: "a while"}); err != nil {
		t.Fatal(err)
	}
	w.Publish(waits)
	w.Await("both stand as the backup is to have them", func() (bool, string) {
		a, b := w.Status(waits.ID()), w.Status(stalls.ID())
		return a == payments.StatusReceived && b == payments.StatusStalled, string(a) + " " + string(b)
	})
	marked(digger)
	if err := digger.Stop(); err != nil {
		t.Fatal(err)
	}
	server, since := serverOf(w), w.Clock.Now()
	backup := server.backUp()
	v := w.Start(world.WorkerOptions{Name: "worker", Marked: true, Replays: func(deadletter.Step) bool { return false }, OnRewind: meddle})
	resumeAll(w, ctx, op)
	w.MustComplete(w.Replay())
	if n := len(w.Sim.Ledger().Charges); n != 2 {
		t.Fatalf("%d charges before the restore, want 2", n)
	}
	marked(v)
	server.restore(backup)
	w.Await("the hold", func() (bool, string) { return v.Mark.Held() != "", "not held" })
	w.Await("the test's own connection to what was restored", func() (bool, string) {
		_, err := w.Store.Mark(ctx)
		return err == nil, fmt.Sprint(err)
	})
	rewindSince(w, since)
	resumeAll(w, ctx, op)
	w.Rest()
	for _, o := range []world.Order{waits, stalls} {
		if s := w.Status(o.ID()); s != payments.StatusSucceeded {
			t.Errorf("%s was charged, and is %s", o.Key, s)
		}
	}
	if n := len(w.Sim.Ledger().Charges); n != 2 || refused.Load() == 0 {
		t.Errorf("%d charges, want 2; %d refusals", n, refused.Load())
	}
}

func resumeAll(w *world.World, ctx context.Context, op payments.Operation) {
	w.Helper()
	for _, scope := range []string{world.Tenant, ""} {
		if _, err := w.Store.Resume(ctx, payments.Pause{TenantID: scope}, op); err != nil {
			w.Fatal(err)
		}
	}
}
