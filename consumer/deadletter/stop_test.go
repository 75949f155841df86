package deadletter

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// TestStopAfterBeginning: a process that is asked to stop while it has begun a message ends it first; the message is not held to have killed it.
func TestStopAfterBeginning(t *testing.T) {
	t.Parallel()
	for _, at := range []Step{StepStarted, StepRead, StepAdmitted} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			w := newWard(t)
			w.bury("dl_m", "acme", "m", payments.ReasonHandlerPanic, message("m", 100))
			r := w.replay(payments.NewReplay{})
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			stopping := w.runner(func(c *Config) {
				c.OnStep = func(s Step, _ string) {
					if s == at {
						stop()
					}
				}
			})
			if err := stopping.Run(ctx); err != nil {
				t.Fatal(err)
			}
			w.advance(time.Minute)
			next := w.runner()
			w.once(next)
			w.work(succeed)
			w.once(next)
			if i := w.item(r.ID, "dl_m"); i.Result != payments.ReplaySucceeded {
				t.Errorf("%s: %s", i.Result, i.Detail)
			}
			if d := w.letter("dl_m"); d.State != payments.DeadLetterReplayed || d.Replays != 1 || d.Reason != payments.ReasonHandlerPanic {
				t.Errorf("%s, %s, %d replays", d.State, d.Reason, d.Replays)
			}
		})
	}
}

// TestLastingEnds: what outlives a stop ends all the same.
func TestLastingEnds(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(context.Background())
	longer, cancel := lasting(ctx, time.Millisecond)
	defer cancel()
	if stop(); longer.Err() != nil {
		t.Error("it ended with what it was to outlive")
	}
	<-longer.Done()
}

// TestDiscardedMessageIsSkipped: a message that was discarded before its turn is not admitted, and stays discarded.
func TestDiscardedMessageIsSkipped(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.bury("dl_m", "acme", "m", payments.ReasonInvalid, message("m", 100))
	r := w.replay(payments.NewReplay{})
	if _, err := w.Exec(`UPDATE dead_letters SET state = 'discarded'`); err != nil {
		t.Fatal(err)
	}
	w.once(w.runner())
	if i := w.item(r.ID, "dl_m"); i.Result != payments.ReplaySkipped {
		t.Errorf("%s: %s", i.Result, i.Detail)
	}
	if d := w.letter("dl_m"); d.State != payments.DeadLetterDiscarded || d.Replays != 0 {
		t.Errorf("%s, %d replays", d.State, d.Replays)
	}
	if _, err := w.Find(context.Background(), "acme", payments.NewID("acme", "m")); payments.ErrorCode(err) != payments.CodeNotFound {
		t.Errorf("its payment: %v", err)
	}
}

// TestManyWaiting: replays that only wait for their payments do not keep one that was made after them from beginning.
func TestManyWaiting(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	const waiting = 100
	for i := range waiting {
		letter, _ := w.stall(fmt.Sprintf("w-%d", i))
		w.replay(payments.NewReplay{Filter: payments.LetterFilter{ID: letter}})
	}
	run := w.runner()
	for range 3 {
		w.once(run)
	}
	w.advance(time.Second)
	letter, _ := w.stall("late")
	late := w.replay(payments.NewReplay{Filter: payments.LetterFilter{ID: letter}})
	w.once(run)
	if got := w.state(late.ID); got.Issued != 1 {
		t.Errorf("%d of the last replay are issued, want 1", got.Issued)
	}
	w.work(succeed)
	w.once(run)
	if got := w.state(late.ID); got.State != payments.ReplayCompleted {
		t.Errorf("the last replay is %s", got.State)
	}
}
