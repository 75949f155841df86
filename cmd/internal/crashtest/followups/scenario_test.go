package followups

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

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

// TestForgottenRefundKey loses the answer to a refund for longer than Stripe remembers its key. It is found by its metadata and made once.
func TestForgottenRefundKey(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{stripesim.FaultCommitThenReset, stripesim.FaultCommitThen503} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			o := w.Order("order-1")
			charged(w, o)
			f := w.FollowUp(payments.KindRefund, o, "refund-1", o.Money.Amount/3)
			w.StoreFollowUps(f)
			w.FaultFollowUp(f, fault, 1)
			die(w, "owner", payments.StepBeforeRecord, map[string]world.FollowUp{"": f})
			w.Clock.Advance(25 * time.Hour)
			w.Start(world.WorkerOptions{Name: "later"})
			w.Rest()
			a := w.MustBeGood(0)
			if now := a.FollowUpRows[f.ID()]; now.Status != payments.StatusSucceeded || len(a.Ledger.Refunds) != 1 || now.StripeRefund != a.Ledger.Refunds[0].ID {
				t.Errorf("it is %s (%s) with %q, and Stripe has %d refunds", now.Status, now.Payment.Reason, now.StripeRefund, len(a.Ledger.Refunds))
			}
		})
	}
}

// TestRefundsAtOnce has many clients refund parts of a few payments under keys that they share and repeat, while workers are killed one after another. Of
// each payment all is given back and no more, and each key has one refund.
func TestRefundsAtOnce(t *testing.T) {
	t.Parallel()
	w, seed := world.New(t), world.SeedOf(t)
	orders := make([]world.Order, 4)
	for i := range orders {
		orders[i] = w.Order(fmt.Sprintf("order-%d", i))
	}
	charged(w, orders...)
	addr := w.SpawnDoor("ingress", "relay").Address()
	c := w.NewCaller()
	const parts, clients = 10, 8
	var all sync.WaitGroup
	for n := range clients {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(n)))
			for _, i := range random.Perm(len(orders) * parts) {
				o := orders[i/parts]
				f := w.FollowUp(payments.KindRefund, o, fmt.Sprintf("%s-part-%d", o.Key, i%parts), o.Money.Amount/parts)
				if status, _ := c.AskFollowUp(f, func() string { return addr }); status != http.StatusAccepted {
					t.Errorf("%s was answered %d", f.Key, status)
				}
			}
		})
	}
	asked := make(chan struct{})
	go func() { all.Wait(); close(asked) }()
	deaths := 0
	for over := false; !over; deaths++ {
		random := rand.New(rand.NewPCG(seed, uint64(clients+deaths)))
		victim := w.Start(world.WorkerOptions{Name: fmt.Sprintf("victim %d", deaths), Stop: func(payments.Step, payments.ID) bool { return false }}) // it is killed wherever it is
		wait := time.NewTimer(time.Duration(100+random.IntN(400)) * time.Millisecond)
		select {
		case <-asked:
			over = true
		case <-wait.C:
		}
		wait.Stop()
		victim.Kill()
	}
	w.Start(world.WorkerOptions{Name: "healthy"})
	for i, o := range orders { // nothing is left
		f := w.FollowUp(payments.KindRefund, o, fmt.Sprintf("too-much-%d", i), 0)
		f.Refused = true
		if status, _ := c.AskFollowUp(f, func() string { return addr }); status != http.StatusUnprocessableEntity {
			t.Errorf("%s was answered %d", f.Key, status)
		}
	}
	w.Rest()
	a := w.MustBeGood(0)
	if len(a.Ledger.Refunds) != len(orders)*parts {
		t.Errorf("%d refunds, want %d (seed %d, %d workers died)", len(a.Ledger.Refunds), len(orders)*parts, seed, deaths)
	}
	for _, o := range orders {
		if p := a.Rows[o.ID()]; p.AmountRefunded != o.Money.Amount/parts*parts {
			t.Errorf("%s: %d of %d are refunded", o.Key, p.AmountRefunded, o.Money.Amount)
		}
	}
}

// TestRefundBehindCapture accepts a refund of what is still to be captured, whose answer is lost; both run in their order.
func TestRefundBehindCapture(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	o := w.Order("order-1")
	o.Held = true
	charged(w, o)
	capture := w.FollowUp(payments.KindCapture, o, "capture-1", o.Money.Amount/2)
	refund := w.FollowUp(payments.KindRefund, o, "refund-1", 0)
	w.StoreFollowUps(capture, refund)
	w.FaultFollowUp(capture, stripesim.FaultCommitThenHang, 1)
	w.FaultFollowUp(refund, stripesim.FaultCommitThenReset, 1)
	w.Start(world.WorkerOptions{Name: "one"})
	w.Start(world.WorkerOptions{Name: "two"})
	w.Rest()
	a := w.MustBeGood(0)
	if p := a.Rows[o.ID()]; p.AmountCaptured != o.Money.Amount/2 || p.AmountRefunded != p.AmountCaptured {
		t.Errorf("%d captured and %d refunded, want %d of both", p.AmountCaptured, p.AmountRefunded, o.Money.Amount/2)
	}
}

// TestBothWaysIn asks for one refund over NATS and over HTTP under one key: it is one.
func TestBothWaysIn(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	o := w.Order("order-1")
	charged(w, o)
	addr := w.SpawnDoor("ingress", "relay").Address()
	f := w.FollowUp(payments.KindRefund, o, "refund-1", 0)
	w.Start(world.WorkerOptions{Name: "worker"})
	var both sync.WaitGroup
	both.Go(func() {
		if status, _ := w.NewCaller().AskFollowUp(f, func() string { return addr }); status != http.StatusAccepted {
			t.Errorf("answered %d", status)
		}
	})
	w.PublishFollowUps(f, f)
	both.Wait()
	w.Rest()
	if a := w.MustBeGood(0); len(a.Ledger.Refunds) != 1 {
		t.Errorf("%d refunds", len(a.Ledger.Refunds))
	}
}

// TestCancelBesideTake cancels payments while workers take them: each is either canceled and never charged, or charged and its cancel has failed.
func TestCancelBesideTake(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	orders, cancels := map[string]world.Order{}, map[string]world.FollowUp{}
	for i := range 40 {
		o := w.Order(fmt.Sprintf("order-%d", i))
		orders[o.Key] = o
		f := w.FollowUp(payments.KindCancel, o, "cancel-"+o.Key, 0)
		f.Refused = true // it may come too late
		cancels[o.Key] = f
	}
	w.StoreUnowned(orders)
	for _, f := range cancels {
		w.ExpectFollowUp(f)
	}
	w.Start(world.WorkerOptions{Name: "one"})
	w.Start(world.WorkerOptions{Name: "two"})
	for _, f := range cancels {
		r := payments.FollowUpRequest{Intent: f.Intent(), Lane: payments.LaneInteractive}
		if a, err := w.Store.AdmitFollowUp(t.Context(), r); err != nil || a.Verdict != payments.VerdictStored && a.Verdict != payments.VerdictInvalidState {
			t.Fatalf("%s: %s %v", f.Key, a.Verdict, err)
		}
	}
	w.Rest()
	a := w.Account()
	for _, v := range a.Violations {
		t.Errorf("%+v", v)
	}
	took := map[string]bool{}
	for _, c := range a.Ledger.Charges {
		if took[c.Customer] {
			t.Errorf("%s was charged twice", c.Customer)
		}
		took[c.Customer] = true
	}
	for key, o := range orders {
		p, f := a.Rows[o.ID()], a.FollowUpRows[cancels[key].ID()]
		canceled := p.Status == payments.StatusCanceled
		if canceled == took[o.Money.Customer] || canceled != (f.Status == payments.StatusSucceeded) || !canceled && p.Status != payments.StatusSucceeded {
			t.Errorf("%s is %s, charged %t, and its cancel %q for %q", key, p.Status, took[o.Money.Customer], f.Status, f.Payment.Reason)
		}
	}
}

// TestCancelOfWhatWasNotSent: what nobody had sent when its cancel was accepted is never sent, where it waited for the end of a pause or for its turn
// behind a backlog, whichever ticket is due first.
func TestCancelOfWhatWasNotSent(t *testing.T) {
	t.Parallel()
	const backlog, canceled = 40, 20
	for name, paused := range map[string]bool{"paused": true, "backlog": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			orders := map[string]world.Order{}
			var list []world.Order
			for i := range backlog + canceled {
				o := w.Order(fmt.Sprintf("order-%02d", i))
				orders[o.Key], list = o, append(list, o)
				w.Expect(o)
			}
			if paused {
				if _, err := w.Store.Pause(t.Context(), payments.Pause{TenantID: world.Tenant, Reason: "to look", Actor: "test"}); err != nil {
					t.Fatal(err)
				}
			}
			w.StoreUnowned(orders)
			var cancels []world.FollowUp
			for _, o := range list[backlog:] {
				cancels = append(cancels, w.FollowUp(payments.KindCancel, o, "cancel-"+o.Key, 0))
			}
			w.StoreFollowUps(cancels...)
			w.Start(world.WorkerOptions{Name: "one", Concurrency: 4})
			w.Start(world.WorkerOptions{Name: "two", Concurrency: 4})
			if paused {
				if _, err := w.Store.Resume(t.Context(), payments.Pause{TenantID: world.Tenant}, payments.Operation{Reason: "seen", Actor: "test"}); err != nil {
					t.Fatal(err)
				}
			}
			w.Rest()
			a := w.MustBeGood(0)
			if len(a.Charges) != backlog {
				t.Errorf("%d charges, want %d", len(a.Charges), backlog)
			}
			for _, f := range cancels {
				p, c := a.Rows[f.Order.ID()], a.FollowUpRows[f.ID()]
				if p.Status != payments.StatusCanceled || c.Status != payments.StatusSucceeded {
					t.Errorf("%s is %s, and its cancel %s for %q", f.Order.Key, p.Status, c.Status, c.Payment.Reason)
				}
			}
		})
	}
}

// TestStoppedRefunder stops an owner (SIGSTOP) between Stripe's answer and Record until another has recorded the refund, and before its send, when its
// lease is over: its late write changes nothing, and nothing leaves.
func TestStoppedRefunder(t *testing.T) {
	t.Parallel()
	for _, step := range []payments.Step{payments.StepBeforeRecord, payments.StepBeforeSubmit} {
		t.Run(string(step), func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			o := w.Order("order-1")
			charged(w, o)
			f := w.FollowUp(payments.KindRefund, o, "refund-1", o.Money.Amount/2)
			w.StoreFollowUps(f)
			owner := w.Spawn(world.Script{Step: step, IDs: []string{f.ID().String()}}, "ONCEPAY_DRAIN=60s")
			owner.AwaitLine(world.SaysAt + " " + string(step))
			owner.Signal(syscall.SIGSTOP)
			w.Start(world.WorkerOptions{Name: "second"})
			w.AwaitFollowUp(f, "the second owner's outcome", func(now payments.FollowUp) bool { return now.Status.Final() })
			w.Rest()
			owner.Signal(syscall.SIGCONT)
			owner.LetGo()
			if step == payments.StepBeforeSubmit && !owner.Says(world.SaysStep+" "+string(payments.StepBeforeRecord)) {
				t.Error("the late owner did not come to record that nothing has left")
			}
			posts := 0
			a := w.MustBeGood(0)
			for _, r := range a.Ledger.Requests {
				if r.Method == http.MethodPost && r.Path == "/v1/refunds" {
					posts++
				}
			}
			if len(a.Ledger.Refunds) != 1 || posts != 1 || owner.Says(world.SaysStep+" "+string(payments.StepAfterRecord)) {
				t.Errorf("%d refunds in %d requests; the late owner recorded: %t", len(a.Ledger.Refunds), posts, owner.Says(world.SaysStep+" "+string(payments.StepAfterRecord)))
			}
		})
	}
}

// TestKeyWithoutTheRightOfRefunds: a refund that the key may not look for, or not make, waits and says so. Payments go on meanwhile, since nothing is wrong with
// the account; with the right given it is made, once.
func TestKeyWithoutTheRightOfRefunds(t *testing.T) {
	t.Parallel()
	for _, right := range []string{"GET /v1/refunds", "POST /v1/refunds"} {
		t.Run(right, func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			o, meanwhile := w.Order("order-1"), w.Order("order-2")
			charged(w, o)
			if err := w.Sim.SetKeys([]stripesim.Key{{Secret: world.StripeKey, Deny: []string{right}}}); err != nil {
				t.Fatal(err)
			}
			f := w.FollowUp(payments.KindRefund, o, "refund-1", o.Money.Amount/2)
			w.StoreFollowUps(f)
			worker := w.Start(world.WorkerOptions{Name: "worker"})
			w.AwaitFollowUp(f, "the refusal", func(now payments.FollowUp) bool {
				if worker.Tripped.Load() {
					t.Error("the account's payments are held back for the want of a right that they do not need")
				}
				return now.Status == payments.StatusWaiting && now.Payment.Reason == payments.ReasonAuthentication
			})
			w.Publish(meanwhile)
			w.Await("the payment", func() (bool, string) {
				s := w.Status(meanwhile.ID())
				return s == payments.StatusSucceeded, string(s)
			})
			if worker.Tripped.Load() || w.FollowUpNow(f).Status != payments.StatusWaiting {
				t.Errorf("held back: %v; the refund is %s", worker.Tripped.Load(), w.FollowUpNow(f).Status)
			}
			if err := w.Sim.SetKeys([]stripesim.Key{{Secret: world.StripeKey}}); err != nil {
				t.Fatal(err)
			}
			w.Rest()
			if a := w.MustBeGood(0); len(a.Ledger.Refunds) != 1 || a.FollowUpRows[f.ID()].Status != payments.StatusSucceeded {
				t.Errorf("%d refunds; it is %s", len(a.Ledger.Refunds), a.FollowUpRows[f.ID()].Status)
			}
		})
	}
}
