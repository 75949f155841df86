package crashtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/oncepay/oncepay/consumer/deadletter"
	"github.com/oncepay/oncepay/payments"
)

// runsReplays lets a worker run replays to their end.
func runsReplays(deadletter.Step) bool { return false }

// theLetter is the only dead letter of a world.
func (w *world) theLetter() payments.DeadLetter {
	w.Helper()
	letters := w.letters()
	if len(letters) != 1 {
		w.Fatalf("%d dead letters, want one: %+v", len(letters), letters)
	}
	return letters[0]
}

// TestPoisonReplayed replays a payment whose handler panics, before the bug is mended: it is dead again, once, and counted. Mended, it is charged once,
// and one more replay finds it settled and asks Stripe nothing.
func TestPoisonReplayed(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, unhurried)
	victim := w.order("victim")
	others := w.publishMany("other", 30)
	w.publish(victim)
	sick := w.start(workerOptions{name: "sick", replays: runsReplays, gateway: func(g payments.Gateway) payments.Gateway {
		return &panicky{Gateway: g, id: victim.id(), left: 1 << 20}
	}})
	w.mustHaveSettled(others)
	w.await("the dead letter", func() (bool, string) { return len(w.letters()) == 1, "there is none" })
	r := w.mustEnd(w.replay())
	if l := w.theLetter(); r.Results[payments.ReplayFailedAgain] != 1 || l.State != payments.DeadLetterOpen || l.Replays != 1 || l.Reason != payments.ReasonHandlerPanic {
		t.Errorf("results %v; the dead letter is %s for %s after %d replays, want open after 1", r.Results, l.State, l.Reason, l.Replays)
	}
	if err := sick.stop(); err != nil {
		t.Fatal(err)
	}
	w.start(workerOptions{name: "mended", replays: runsReplays})
	w.mustHaveSettled([]order{victim})
	w.rest()
	before := w.sim.Summary().Requests
	r = w.mustEnd(w.replay())
	if l := w.theLetter(); r.Results[payments.ReplayAlreadySettled] != 1 || l.State != payments.DeadLetterReplayed || l.Replays != 2 {
		t.Errorf("results %v; the dead letter is %s after %d replays, want replayed after 2", r.Results, l.State, l.Replays)
	}
	if n := w.sim.Summary().Requests - before; n != 0 {
		t.Errorf("the replay of a settled payment asked Stripe %d times", n)
	}
	if a := w.mustBeGood(1); len(a.Charges) != len(others)+1 {
		t.Errorf("%d charges, want %d", len(a.Charges), len(others)+1)
	}
}

// mustEnd waits until a replay is complete.
func (w *world) mustEnd(id string) (r payments.Replay) {
	w.Helper()
	w.await("the replay's end", func() (bool, string) {
		var err error
		r, err = w.store.Replay(w.Context(), id)
		return err == nil && r.State == payments.ReplayCompleted, fmt.Sprintf("%+v %v", r, err)
	})
	return r
}

// TestWorkerKillerReplayed replays a payment that ends every worker which takes it: it ends six more, and is the same dead letter again, replayed once.
func TestWorkerKillerReplayed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	killer := w.order("killer")
	w.expect(killer)
	w.storeUnowned(map[string]order{"": killer})
	kill := func(s payments.Step, id payments.ID) bool { return s == payments.StepAfterTake && id == killer.id() }
	if deaths := w.killUntilBuried(killer, payments.StepAfterTake); deaths != payments.AbandonedMax {
		t.Errorf("%d workers died, want %d", deaths, payments.AbandonedMax)
	}
	id := w.replay()
	deaths := 0
	for l := w.theLetter(); l.Replays == 0 || l.State != payments.DeadLetterOpen; {
		v := w.start(workerOptions{name: fmt.Sprintf("again %d", deaths+1), stop: kill, replays: runsReplays})
		w.await("a death, or the dead letter again", func() (bool, string) {
			l = w.theLetter()
			return v.gate.hasStopped(killer.id()) || l.Replays > 0 && l.State == payments.DeadLetterOpen, "neither"
		})
		v.kill()
		if deaths++; deaths > 2*payments.AbandonedMax {
			t.Fatal("the payment ends one worker after another for ever")
		}
	}
	w.start(workerOptions{name: "healthy", replays: runsReplays})
	r := w.mustEnd(id)
	if l := w.theLetter(); l.Replays != 1 || l.Reason != payments.ReasonWorkerKilled || r.Results[payments.ReplayFailedAgain]+r.Results[payments.ReplaySucceeded] != 1 {
		t.Errorf("results %v; the dead letter: %s after %d replays", r.Results, l.Reason, l.Replays)
	}
	w.mustHaveSettled([]order{killer})
	if a := w.mustBeGood(1); len(a.Charges) != 1 {
		t.Errorf("%d charges, want 1", len(a.Charges))
	}
}

// lossy loses every answer to a submit, by a panic of whoever waited for it.
type lossy struct{ payments.Gateway }

func (g lossy) Submit(ctx context.Context, s payments.Submission) payments.Observation {
	g.Gateway.Submit(ctx, s)
	panic("a bug behind the answer")
}

// TestReplayADayLater: Stripe charged, and the outcome was lost with its handler, which left a dead letter. It is replayed 25 hours later, when Stripe
// has forgotten the key: what Stripe's records show is adopted, and when they show nothing a person decides. There is never a second PaymentIntent.
// Replayed a month later, a settled payment asks Stripe nothing.
func TestReplayADayLater(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		records int32
		want    payments.Status
	}{"found": {recordsTrue, payments.StatusSucceeded}, "not shown": {recordsEmpty, payments.StatusNeedsReview}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			stripe := w.newFront()
			stripe.records.Store(recordsAway)
			o := w.order("order-1")
			w.publish(o)
			sick := w.start(workerOptions{name: "sick", gateway: func(g payments.Gateway) payments.Gateway { return lossy{g} }})
			w.await("the dead letter", func() (bool, string) { return len(w.letters()) == 1, "there is none" })
			if err := sick.stop(); err != nil {
				t.Fatal(err)
			}
			w.clock.advance(25 * time.Hour)
			stripe.records.Store(c.records)
			id := w.replay()
			w.start(workerOptions{name: "mended", replays: runsReplays})
			w.await("a look-up, and what follows from it", func() (bool, string) {
				return w.status(o.id()).Final() || stripe.reads.Load() > 0 && w.absenceNoted(o), string(w.status(o.id()))
			})
			w.clock.advance(2 * time.Hour)
			r := w.mustEnd(id)
			w.clock.advance(30 * 24 * time.Hour)
			before := w.sim.Summary().Requests
			w.mustEnd(w.replay())
			w.rest()
			a := w.account()
			if s := w.status(o.id()); s != c.want || r.Total != 1 {
				t.Errorf("the payment came to rest as %s, want %s; results %v", s, c.want, r.Results)
			}
			if l := w.theLetter(); (l.State == payments.DeadLetterOpen) != (c.want == payments.StatusNeedsReview) {
				t.Errorf("the dead letter of a payment that is %s is %s", c.want, l.State)
			}
			if a.Summary.PaymentIntents != 1 || a.Summary.Posts != 1 || len(a.Charges) != 1 {
				t.Errorf("%d PaymentIntents and %d charges in %d requests, want one of each", a.Summary.PaymentIntents, len(a.Charges), a.Summary.Posts)
			}
			if n := a.Summary.Requests - before; n != 0 {
				t.Errorf("the replay a month later asked Stripe %d times", n)
			}
		})
	}
}
