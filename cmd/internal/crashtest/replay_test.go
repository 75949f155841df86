package crashtest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/consumer/deadletter"
	"github.com/oncepay/oncepay/payments"
)

// replayer is the part of a server that runs replays.
func (w *world) replayer() *deadletter.Runner {
	w.Helper()
	r, err := deadletter.New(deadletter.Config{Store: w.store, Batches: w.store, Replays: w.store, Clock: w.clock, Subjects: w.subjects})
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// replayAll lets as many operators replay all dead letters at once, and waits until their replays are complete. It returns what they came to, together.
func (w *world) replayAll(operators int) map[payments.ReplayResult]int {
	w.Helper()
	made := make(chan payments.Replay, operators)
	for range operators {
		go func() {
			r, err := w.store.CreateReplay(w.Context(), payments.NewReplay{Operation: payments.Operation{Actor: "ann@ops", Reason: "mended"}})
			if err != nil {
				w.Error(err)
			}
			made <- r
		}()
	}
	results := map[payments.ReplayResult]int{}
	runner := w.replayer()
	for range operators {
		r := <-made
		w.await("the end of a replay", func() (bool, string) {
			if _, err := runner.RunOnce(w.Context()); err != nil {
				return false, err.Error()
			}
			now, err := w.store.Replay(w.Context(), r.ID)
			if err != nil {
				return false, err.Error()
			}
			r = now
			return r.State == payments.ReplayCompleted, string(r.State)
		})
		for result, n := range r.Results {
			results[result] += n
		}
	}
	return results
}

// TestReplayedMessageIsChargedOnce: a message that ended every worker is replayed at once when that is mended, by two operators at the same time: it is
// charged once, under its producer's key, and no stream's window for duplicates swallows it. What has its outcome is not sent again.
func TestReplayedMessageIsChargedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	killer := w.order("killer")
	w.publish(killer)
	w.killUntilBuried(killer, payments.StepBeforeAdmit)
	w.start(workerOptions{name: "mended"})
	if got := w.replayAll(2); got[payments.ReplaySucceeded] != 1 || len(got) != 1 {
		t.Errorf("results: %v", got)
	}
	a := w.mustBeGood(1)
	if len(a.Charges) != 1 || w.status(killer.id()) != payments.StatusSucceeded {
		t.Errorf("%d charges; the order is %s", len(a.Charges), w.status(killer.id()))
	}
	if l := w.letters(); len(l) != 1 || l[0].State != payments.DeadLetterReplayed || l[0].Replays != 1 {
		t.Errorf("dead letters: %+v", l)
	}
}

// TestReplayedADayLater: Stripe charged, and every worker ended before it could record that. A replay after Stripe has forgotten the key finds the
// charge and makes no second one; a replay of a payment that has its outcome asks Stripe nothing.
func TestReplayedADayLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	killer := w.order("killer")
	w.publish(killer)
	w.killUntilBuried(killer, payments.StepBeforeRecord)
	if s := w.status(killer.id()); s != payments.StatusUnknown {
		t.Fatalf("it is %s, want unknown", s)
	}
	w.clock.advance(25 * time.Hour)
	w.start(workerOptions{name: "mended"})
	if got := w.replayAll(1); got[payments.ReplaySucceeded]+got[payments.ReplayAlreadySettled] != 1 {
		t.Errorf("results: %v", got)
	}
	a := w.mustBeGood(1)
	if len(a.Charges) != 1 || w.status(killer.id()) != payments.StatusSucceeded {
		t.Errorf("%d charges; the order is %s", len(a.Charges), w.status(killer.id()))
	}
	w.sql(func(ctx context.Context, conn *pgx.Conn) error { // as if its letter had been left open
		_, err := conn.Exec(ctx, "UPDATE dead_letters SET state = 'open'")
		return err
	})
	before := len(w.sim.Ledger().Requests)
	if got := w.replayAll(1); got[payments.ReplayAlreadySettled] != 1 {
		t.Errorf("results of the settled one: %v", got)
	}
	if n := len(w.sim.Ledger().Requests) - before; n != 0 {
		t.Errorf("%d requests to Stripe for a payment that has its outcome", n)
	}
}
