package protection

import (
	"syscall"
	"testing"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
)

// TestStoppedOwnerAfterAnswer stops an owner (SIGSTOP) between Stripe's answer and Record, until another has taken over and recorded. When it
// goes on, its write must change nothing.
func TestStoppedOwnerAfterAnswer(t *testing.T) {
	t.Parallel()
	stoppedOwner(t, payments.StepBeforeRecord)
}

// TestStoppedOwnerBeforeSend stops an owner between token and send. When it goes on, its lease is over and nothing may leave.
func TestStoppedOwnerBeforeSend(t *testing.T) {
	t.Parallel()
	stoppedOwner(t, payments.StepBeforeSubmit)
}

func stoppedOwner(t *testing.T, step payments.Step) {
	w := world.New(t)
	o := w.Order("order-1")
	w.Publish(o)
	owner := w.Spawn(world.Script{Step: step, IDs: []string{o.ID().String()}})
	owner.AwaitLine(world.SaysAt + " " + string(step))
	owner.Signal(syscall.SIGSTOP)
	w.Start(world.WorkerOptions{Name: "second"})
	w.Await("the second owner's outcome", func() (bool, string) { s := w.Status(o.ID()); return s.Final(), string(s) })
	w.Rest()
	owner.Signal(syscall.SIGCONT)
	if _, err := owner.Pipe.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	owner.AwaitLine(world.SaysStep + " " + string(payments.StepBeforeAck)) // the late owner has tried to record, and is done
	conclude(w, func(a world.Account) {
		if len(a.Charges) != 1 || a.Summary.Posts != 1 {
			t.Errorf("%d charges in %d requests, want one of each", len(a.Charges), a.Summary.Posts)
		}
		if owner.Says(world.SaysStep + " " + string(payments.StepAfterRecord)) {
			t.Error("the late owner recorded something")
		}
	})
}
