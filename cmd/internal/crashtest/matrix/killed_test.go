package matrix

import (
	"syscall"
	"testing"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
)

// killFaults are what happens to the submissions of processes that are killed.
var killFaults = []string{"", "commit_then_503", "commit_then_reset"}

// TestKilledProcess ends a real worker process with SIGKILL at each step, for payments whose answer arrives and for such whose answer is lost;
// then a healthy worker finishes.
func TestKilledProcess(t *testing.T) {
	t.Parallel()
	for _, step := range payments.Steps() {
		for _, fault := range killFaults {
			name := fault
			if name == "" {
				name = "none"
			}
			t.Run(string(step)+"/"+name, func(t *testing.T) {
				t.Parallel()
				w := world.New(t)
				o, charges := w.Order("order-1"), 1
				if step == payments.StepBeforeCancel || step == payments.StepAfterCancel {
					o.Method, o.Declines, o.Present, charges = "pm_card_visa_chargeDeclined", true, true, 0
				}
				if fault != "" {
					w.Fault(o, fault, 1)
				}
				if step == payments.StepAfterTake {
					w.StoreUnowned(map[string]world.Order{"": o})
				}
				w.Publish(o)
				p := w.Spawn(world.Script{Step: step, IDs: []string{o.ID().String()}, Kill: true})
				select {
				case <-p.Exited:
				case <-time.After(world.RestLimit):
					t.Fatal("the process did not come to its step")
				}
				status, ok := p.Command.ProcessState.Sys().(syscall.WaitStatus)
				if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
					t.Fatalf("the process ended otherwise than by SIGKILL: %v", p.Err)
				}
				w.Start(world.WorkerOptions{Name: "healthy"})
				a := w.MustBeGood(0)
				if len(a.Charges) != charges {
					t.Errorf("%d charges, want %d", len(a.Charges), charges)
				}
				if o.Declines {
					mustBeCanceled(w, t, a, o)
				}
			})
		}
	}
}
