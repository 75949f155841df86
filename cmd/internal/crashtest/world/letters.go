package world

import (
	"fmt"
	"slices"

	"github.com/oncepay/oncepay/consumer/deadletter"
	"github.com/oncepay/oncepay/payments"
)

// Replay makes a replay of all open dead letters.
func (w *World) Replay() string {
	w.Helper()
	made, err := w.Store.CreateReplay(w.Context(), payments.NewReplay{Operation: payments.Operation{Actor: "matrix"}})
	if err != nil {
		w.Fatal(err)
	}
	return made.ID
}

// MustComplete waits until a replay is complete, and until all is at rest.
func (w *World) MustComplete(id string) payments.Replay {
	w.Helper()
	var r payments.Replay
	w.Await("the replay's end", func() (bool, string) {
		var err error
		r, err = w.Store.Replay(w.Context(), id)
		return err == nil && r.State == payments.ReplayCompleted, fmt.Sprintf("%+v %v", r, err)
	})
	w.Rest()
	sum := 0
	for _, n := range r.Results {
		sum += n
	}
	if sum != r.Total || r.Issued != r.Total {
		w.Errorf("a complete replay of %d has %d results %v and %d begun", r.Total, sum, r.Results, r.Issued)
	}
	return r
}

// KillUntilBuried lets an order end one worker after another at one of the steps, until its dead letter says so, and returns how many died. What
// the dead had in hand comes back at once: their leases are over.
func (w *World) KillUntilBuried(killer Order, at ...payments.Step) (deaths int) {
	w.Helper()
	for range payments.AbandonedMax + 2 {
		v := w.Start(WorkerOptions{Name: fmt.Sprintf("worker %d", deaths+1), Stop: func(s payments.Step, id payments.ID) bool {
			return slices.Contains(at, s) && id == killer.ID()
		}})
		buried := false
		w.Await("a death, or the dead letter", func() (bool, string) {
			buried = len(w.Letters()) > 0
			return buried || v.Gate.HasStopped(killer.ID()), "neither"
		})
		v.Kill() // also the one that gave it up: it would soon have it again
		w.Clock.Advance(w.Times.Lease)
		if buried {
			break
		}
		deaths++
	}
	letters := w.Letters()
	if len(letters) != 1 || letters[0].Reason != payments.ReasonWorkerKilled || letters[0].IdempotencyKey != killer.Key {
		w.Fatalf("dead letters %v, want one of worker_killed", letters)
	}
	return deaths
}

// Letters are all dead letters of the world.
func (w *World) Letters() []payments.DeadLetter {
	w.Helper()
	a := Account{}
	w.readPayments(w.Context(), &a)
	return a.Letters
}

// replayer is the part of a server that runs replays.
func (w *World) replayer() *deadletter.Runner {
	w.Helper()
	r, err := deadletter.New(deadletter.Config{Store: w.Store, FollowUps: w.Store, Batches: w.Store, Replays: w.Store, Clock: w.Clock, Subjects: w.Subjects})
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// ReplayAll lets as many operators replay all dead letters at once, and waits until their replays are complete. It returns what they came to, together.
func (w *World) ReplayAll(operators int) map[payments.ReplayResult]int {
	w.Helper()
	made := make(chan payments.Replay, operators)
	for range operators {
		go func() {
			r, err := w.Store.CreateReplay(w.Context(), payments.NewReplay{Operation: payments.Operation{Actor: "ann@ops", Reason: "mended"}})
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
		w.Await("the end of a replay", func() (bool, string) {
			if _, err := runner.RunOnce(w.Context()); err != nil {
				return false, err.Error()
			}
			now, err := w.Store.Replay(w.Context(), r.ID)
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
