package letters

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
)

// deaf never comes back from submitting one payment until it is mended, and sends nothing. It listens to no context.
type deaf struct {
	payments.Gateway
	id     payments.ID
	mended atomic.Bool
	freed  <-chan struct{}
}

func (g *deaf) Submit(ctx context.Context, s payments.Submission) payments.Observation {
	if s.Payment.ID == g.id && !g.mended.Load() {
		<-g.freed
		return payments.Observation{Kind: payments.ObservedNotSent, Detail: "held up"}
	}
	return g.Gateway.Submit(ctx, s)
}

// TestHangingHandler: a payment's handler hangs past AckWait and past its lease, each time anew. No attempt is used up in silence: the sixth in a row
// leaves a dead letter, everybody beside it settles, and once the handler is mended the payment is charged, once. (A look-up that timed out on a busy
// machine is recorded, and from then on they are counted anew; so it hangs until the letter is there, and not just six times.)
func TestHangingHandler(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	victim := w.Order("victim")
	bystanders := w.PublishMany("bystander", 20)
	freed := make(chan struct{})
	var once sync.Once
	free := func() { once.Do(func() { close(freed) }) }
	t.Cleanup(free)
	w.Publish(victim)
	hanging := &deaf{id: victim.ID(), freed: freed}
	w.Start(world.WorkerOptions{Name: "worker", Gateway: func(g payments.Gateway) payments.Gateway {
		hanging.Gateway = g
		return hanging
	}})
	w.MustHaveSettled(bystanders)
	w.Await("the dead letter", func() (bool, string) { return len(w.Letters()) > 0, string(w.Status(victim.ID())) })
	hanging.mended.Store(true)
	w.MustHaveSettled([]world.Order{victim})
	free() // the late ones come back, and change nothing
	a := w.MustBeGood(1)
	if l := a.Letters[0]; l.Reason != payments.ReasonWorkerKilled || l.IdempotencyKey != victim.Key {
		t.Errorf("the dead letter is %+v", l)
	}
	if len(a.Charges) != len(bystanders)+1 {
		t.Errorf("%d charges, want %d", len(a.Charges), len(bystanders)+1)
	}
}

// TestMessageKillsProcesses ends real processes with SIGKILL, each time that one begins with a message, until the server has delivered it so
// often that it is a dead letter, with its bytes. Between two processes nobody is up who could hear of it.
func TestMessageKillsProcesses(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	killer := w.Order("killer")
	w.Publish(killer)
	deaths := 0
	for range payments.SuspectFrom + payments.SuspectStartsMax + 2 {
		p := w.Spawn(world.Script{Step: payments.StepBeforeAdmit, IDs: []string{killer.ID().String()}, Kill: true})
		buried := false
		w.Await("the end of a process, or the dead letter", func() (bool, string) {
			select {
			case <-p.Exited:
				return true, ""
			default:
				buried = len(w.Letters()) > 0
				return buried, "neither"
			}
		})
		if buried {
			break
		}
		if status, ok := p.Command.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
			t.Fatalf("a process ended otherwise than by SIGKILL: %v", p.Err)
		}
		deaths++
	}
	if want := payments.SuspectFrom - 1 + payments.SuspectStartsMax; deaths != want {
		t.Errorf("%d processes ended, want %d", deaths, want)
	}
	a := w.MustBeGood(1)
	full, err := w.Store.DeadLetter(t.Context(), a.Letters[0].ID)
	if err != nil || full.Reason != payments.ReasonWorkerKilled || !bytes.Equal(full.Payload, killer.Body(t)) {
		t.Errorf("the dead letter is %+v, %v", full, err)
	}
}
