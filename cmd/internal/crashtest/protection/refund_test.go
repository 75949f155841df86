package protection

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// TestLookBeforeRefunding loses answers to refunds that Stripe has made and does not remember under their keys: whoever only sent again would make them
// twice, since each is of a part.
func TestLookBeforeRefunding(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	var orders []world.Order
	for i := range 10 {
		orders = append(orders, w.Order(fmt.Sprintf("order-%d", i)))
	}
	charged(w, orders...)
	for _, o := range orders {
		f := w.FollowUp(payments.KindRefund, o, "refund-"+o.Key, o.Money.Amount/3)
		rule := stripesim.Rule{Match: stripesim.Match{Path: "/v1/refunds", Metadata: f.Intent().Metadata}, Fault: stripesim.FaultCommitThen503, Times: 1}
		if err := w.Sim.AddFault(rule); err != nil {
			t.Fatal(err)
		}
		w.StoreFollowUps(f)
	}
	w.Start(world.WorkerOptions{Name: "healthy"})
	conclude(w, func(a world.Account) {
		if len(a.Ledger.Refunds) != len(orders) {
			t.Errorf("%d refunds were made of %d", len(a.Ledger.Refunds), len(orders))
		}
		if len(a.DeadLetters) > 0 {
			t.Errorf("dead letters: %v", a.Reasons())
		}
	})
}

// charged pays orders, and returns when all of them stand.
func charged(w *world.World, orders ...world.Order) {
	w.Helper()
	w.Publish(orders...)
	payer := w.Start(world.WorkerOptions{Name: "payer"})
	w.Rest()
	if err := payer.Stop(); err != nil {
		w.Fatal(err)
	}
}

// mustBeRefundedOnce wants one refund, of one request.
func mustBeRefundedOnce(w *world.World) {
	w.Helper()
	conclude(w, func(a world.Account) {
		posts := 0
		for _, r := range a.Ledger.Requests {
			if r.Method == http.MethodPost && r.Path == "/v1/refunds" {
				posts++
			}
		}
		if len(a.Ledger.Refunds) != 1 || posts != 1 {
			w.Errorf("%d refunds in %d requests, want one of each", len(a.Ledger.Refunds), posts)
		}
	})
}

// TestStoppedRefunderAfterAnswer stops the owner of a refund (SIGSTOP) between Stripe's answer and Record, until another has taken over and recorded. Its
// late write must change nothing: it would add to what its payment says was given back.
func TestStoppedRefunderAfterAnswer(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	o := w.Order("order-1")
	charged(w, o)
	f := w.FollowUp(payments.KindRefund, o, "refund-1", o.Money.Amount/3)
	w.StoreFollowUps(f)
	owner := w.Spawn(world.Script{Step: payments.StepBeforeRecord, IDs: []string{f.ID().String()}}, "ONCEPAY_DRAIN=60s")
	owner.AwaitLine(world.SaysAt + " " + string(payments.StepBeforeRecord))
	owner.Signal(syscall.SIGSTOP)
	w.Start(world.WorkerOptions{Name: "second"})
	w.AwaitFollowUp(f, "the second owner's outcome", func(now payments.FollowUp) bool { return now.Status.Final() })
	w.Rest()
	owner.Signal(syscall.SIGCONT)
	owner.LetGo()
	mustBeRefundedOnce(w)
}

// heldUp is a way to Stripe on which the first answer to a look for refunds takes until it is let go.
type heldUp struct {
	payments.Gateway
	payments.FollowUpGateway
	first    *sync.Once
	looked   chan<- struct{}
	released <-chan struct{}
}

func (h heldUp) LookRefunds(ctx context.Context, p payments.Payment, progress func() error) payments.Observation {
	o := h.FollowUpGateway.LookRefunds(ctx, p, progress)
	h.first.Do(func() {
		close(h.looked)
		<-h.released
	})
	return o
}

// TestRefunderHeldUpBeforeSend holds up the owner of a refund after it has seen that there is none, for longer than its lease. Another makes it, and
// is about to record it, when the first goes on; Stripe remembers no key. Nothing may leave for what the first has seen.
func TestRefunderHeldUpBeforeSend(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	w.Sim.SetIdempotency(false)
	o := w.Order("order-1")
	charged(w, o)
	f := w.FollowUp(payments.KindRefund, o, "refund-1", o.Money.Amount/3)
	w.StoreFollowUps(f)
	looked, released := make(chan struct{}), make(chan struct{})
	letGo := sync.OnceFunc(func() { close(released) })
	w.Cleanup(letGo)
	var taken atomic.Bool
	first := w.Start(world.WorkerOptions{
		Name: "first",
		Gateway: func(g payments.Gateway) payments.Gateway {
			return heldUp{Gateway: g, FollowUpGateway: g.(payments.FollowUpGateway), first: new(sync.Once), looked: looked, released: released}
		},
		Watch: func(s payments.Step, id payments.ID) {
			if s == payments.StepBeforeTake && taken.Load() {
				<-released // it must not take over from itself
			}
			taken.CompareAndSwap(false, s == payments.StepAfterTake && id == f.ID())
		},
	})
	<-looked
	second := w.Start(world.WorkerOptions{Name: "second", Stop: func(s payments.Step, id payments.ID) bool { return s == payments.StepBeforeRecord && id == f.ID() }})
	w.Await("the second owner's refund", func() (bool, string) { return second.Gate.HasStopped(f.ID()), "not made yet" })
	// Nobody takes it while the first goes on.
	if _, err := w.Store.Pause(w.Context(), payments.Pause{TenantID: world.Tenant, Reason: "the first goes on", Actor: "test"}); err != nil {
		t.Fatal(err)
	}
	letGo()
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	second.Kill()
	if _, err := w.Store.Resume(w.Context(), payments.Pause{TenantID: world.Tenant}, payments.Operation{Actor: "test", Reason: "it has ended"}); err != nil {
		t.Fatal(err)
	}
	w.Start(world.WorkerOptions{Name: "healthy"})
	mustBeRefundedOnce(w)
}
