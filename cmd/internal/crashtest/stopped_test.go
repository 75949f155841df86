package crashtest

import (
	"syscall"
	"testing"

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
	w := newWorld(t)
	o := w.order("order-1")
	w.publish(o)
	owner := w.spawn(script{Step: step, IDs: []string{o.id().String()}})
	owner.awaitLine(saysAt + " " + string(step))
	owner.signal(syscall.SIGSTOP)
	w.start(workerOptions{name: "second"})
	w.await("the second owner's outcome", func() (bool, string) { s := w.status(o.id()); return s.Final(), string(s) })
	w.rest()
	owner.signal(syscall.SIGCONT)
	if _, err := owner.pipe.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	owner.awaitLine(saysStep + " " + string(payments.StepBeforeAck)) // the late owner has tried to record, and is done
	w.conclude(func(a account) {
		if len(a.Charges) != 1 || a.Summary.Posts != 1 {
			t.Errorf("%d charges in %d requests, want one of each", len(a.Charges), a.Summary.Posts)
		}
		if owner.says(saysStep + " " + string(payments.StepAfterRecord)) {
			t.Error("the late owner recorded something")
		}
	})
}
