package followups

import (
	"slices"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// unheard are the ways in which a charge comes to be in doubt.
var unheard = []string{
	stripesim.FaultResetBefore, stripesim.FaultCommitThenHang, stripesim.FaultCommitThenReset, stripesim.FaultCommitThen500, stripesim.FaultCommitThen503,
	stripesim.FaultTruncateBody, stripesim.FaultHTML502, stripesim.FaultGarbage200,
}

// doubtful is a charge in doubt, and its cancel.
type doubtful struct {
	order  world.Order
	cancel world.FollowUp
}

// inDoubt are charges of which nobody knows whether they were made, one taken at once and one held for each way, with a cancel of each accepted.
func inDoubt(w *world.World) map[string]doubtful {
	w.Helper()
	stripe := w.NewFront()
	stripe.Records.Store(world.RecordsAway)
	list := map[string]doubtful{}
	for _, fault := range unheard {
		for _, kind := range []string{"taken", "held"} {
			name, _, _ := strings.Cut(fault, ":")
			o := w.Order(kind + "_" + name)
			o.Held = kind == "held"
			w.Fault(o, fault, 1)
			w.Publish(o)
			f := w.FollowUp(payments.KindCancel, o, "cancel-"+o.Key, 0)
			f.Refused = !o.Held // it comes too late
			list[o.Key] = doubtful{o, f}
		}
	}
	payer := w.Start(world.WorkerOptions{Name: "payer"})
	w.Await("the doubts", func() (bool, string) {
		for name, d := range list {
			if s := w.Status(d.order.ID()); s != payments.StatusUnknown {
				return false, name + " is " + string(s)
			}
		}
		return true, ""
	})
	if err := payer.Stop(); err != nil {
		w.Fatal(err)
	}
	for _, d := range list {
		w.StoreFollowUps(d.cancel)
	}
	stripe.Records.Store(world.RecordsTrue)
	return list
}

// TestCancelInDoubt accepts cancels of charges that are in doubt, and kills a worker at every step of the charge and of the cancel. Whoever is told that a
// cancel has succeeded is charged neither before nor after; what is held is let go; and payment, cancel and Stripe's ledger say the same in the end.
func TestCancelInDoubt(t *testing.T) {
	t.Parallel()
	for turn, of := range []string{"charge", "cancel"} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			for i, step := range steps {
				if world.Scale > 1 && (i+turn)%2 == 0 {
					continue // as in the matrix
				}
				t.Run(string(step), func(t *testing.T) {
					t.Parallel()
					cancelInDoubt(t, of == "charge", step)
				})
			}
		})
	}
}

func cancelInDoubt(t *testing.T, ofCharge bool, step payments.Step) {
	pace := world.Short
	pace.Lease *= 3 // as in the matrix
	w := world.NewOf(t, pace)
	list := inDoubt(w)
	dying := map[payments.ID]bool{{}: true}
	for _, d := range list {
		dying[d.cancel.ID()], dying[d.order.ID()] = !ofCharge, ofCharge
	}
	victim := w.Start(world.WorkerOptions{Name: "victim", Concurrency: 16 * len(list), Stop: func(s payments.Step, id payments.ID) bool { return is(s, step) && dying[id] }})
	w.Await("the death at "+string(step), func() (bool, string) {
		if step == payments.StepBeforeTake {
			return victim.Gate.HasStopped(payments.ID{}), "nothing was taken"
		}
		for name, d := range list {
			id := d.cancel.ID()
			if ofCharge {
				id = d.order.ID()
			}
			if !victim.Gate.HasStopped(id) && !w.FollowUpNow(d.cancel).Status.Final() {
				return false, name + " is neither stopped nor settled"
			}
		}
		return true, ""
	})
	victim.Kill()
	if broken, err := w.Store.TicketViolations(t.Context()); err != nil || len(broken) > 0 {
		t.Errorf("right after the death, ticket and status disagree: %+v %v", broken, err)
	}
	w.Start(world.WorkerOptions{Name: "healthy"})
	a := w.MustBeGood(0)
	for name, d := range list {
		p, f := a.Rows[d.order.ID()], a.FollowUpRows[d.cancel.ID()]
		want, done := payments.StatusSucceeded, payments.StatusFailed
		if d.order.Held {
			want, done = payments.StatusCanceled, payments.StatusSucceeded
		}
		if p.Status != want || f.Status != done {
			t.Errorf("%s is %s (%s), and its cancel %s (%s); want %s and %s", name, p.Status, p.Reason, f.Status, f.Payment.Reason, want, done)
		}
		mustEndWithCancel(t, a, d, f)
	}
}

// mustEndWithCancel wants one charge at most, and none sent, taken or held once the cancel has succeeded.
func mustEndWithCancel(t *testing.T, a world.Account, d doubtful, f payments.FollowUp) {
	t.Helper()
	key := payments.StripeKey(world.Namespace, payments.KindCharge, d.order.TenantID, d.order.Key)
	charges := 0
	for _, c := range a.Ledger.Charges {
		if c.Customer != d.order.Money.Customer {
			continue
		}
		if charges++; f.Status == payments.StatusSucceeded && c.AmountCaptured > 0 {
			t.Errorf("%s was canceled, and %d was taken", d.order.Key, c.AmountCaptured)
		}
	}
	if charges > 1 {
		t.Errorf("%s was charged %d times", d.order.Key, charges)
	}
	if f.Status != payments.StatusSucceeded {
		return
	}
	sent, last := 0, uint64(0)
	for _, r := range a.Ledger.Requests {
		switch {
		case r.IdempotencyKey != key && !strings.HasSuffix(r.Path, "/cancel"):
		case r.IdempotencyKey == key && r.At.After(f.FinalizedAt):
			t.Errorf("%s was sent at %s, and its cancel had succeeded at %s", d.order.Key, r.At, f.FinalizedAt)
		case r.IdempotencyKey == key:
			sent, last = sent+1, max(last, r.Seq)
		case slices.ContainsFunc(a.Ledger.Charges, func(c stripesim.Charge) bool {
			return c.PaymentIntent == r.PaymentIntent && c.Customer == d.order.Money.Customer
		}) && r.Seq < last:
			t.Errorf("%s was canceled by request %d, and sent by request %d", d.order.Key, r.Seq, last)
		}
	}
	if sent == 0 {
		t.Errorf("%s was never sent: the case shows nothing", d.order.Key)
	}
}
