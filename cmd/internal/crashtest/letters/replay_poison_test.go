package letters

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/consumer/deadletter"
	"github.com/oncepay/oncepay/payments"
)

// runsReplays lets a worker run replays to their end.
func runsReplays(deadletter.Step) bool { return false }

// theLetter is the only dead letter of a world.
func theLetter(w *world.World) payments.DeadLetter {
	w.Helper()
	letters := w.Letters()
	if len(letters) != 1 {
		w.Fatalf("%d dead letters, want one: %+v", len(letters), letters)
	}
	return letters[0]
}

// TestPoisonReplayed replays a payment whose handler panics, before the bug is mended: it is dead again, once, and counted. Mended, it is charged once,
// and one more replay finds it settled and asks Stripe nothing.
func TestPoisonReplayed(t *testing.T) {
	t.Parallel()
	w := world.NewOf(t, world.Unhurried)
	victim := w.Order("victim")
	others := w.PublishMany("other", 30)
	w.Publish(victim)
	sick := w.Start(world.WorkerOptions{Name: "sick", Replays: runsReplays, Gateway: func(g payments.Gateway) payments.Gateway {
		return &panicky{Gateway: g, id: victim.ID(), left: 1 << 20}
	}})
	w.MustHaveSettled(others)
	w.Await("the dead letter", func() (bool, string) { return len(w.Letters()) == 1, "there is none" })
	r := mustEnd(w, w.Replay())
	if l := theLetter(w); r.Results[payments.ReplayFailedAgain] != 1 || l.State != payments.DeadLetterOpen || l.Replays != 1 || l.Reason != payments.ReasonHandlerPanic {
		t.Errorf("results %v; the dead letter is %s for %s after %d replays, want open after 1", r.Results, l.State, l.Reason, l.Replays)
	}
	if err := sick.Stop(); err != nil {
		t.Fatal(err)
	}
	w.Start(world.WorkerOptions{Name: "mended", Replays: runsReplays})
	w.MustHaveSettled([]world.Order{victim})
	w.Rest()
	before := w.Sim.Summary().Requests
	r = mustEnd(w, w.Replay())
	if l := theLetter(w); r.Results[payments.ReplayAlreadySettled] != 1 || l.State != payments.DeadLetterReplayed || l.Replays != 2 {
		t.Errorf("results %v; the dead letter is %s after %d replays, want replayed after 2", r.Results, l.State, l.Replays)
	}
	if n := w.Sim.Summary().Requests - before; n != 0 {
		t.Errorf("the replay of a settled payment asked Stripe %d times", n)
	}
	if a := w.MustBeGood(1); len(a.Charges) != len(others)+1 {
		t.Errorf("%d charges, want %d", len(a.Charges), len(others)+1)
	}
}

// mustEnd waits until a replay is complete.
func mustEnd(w *world.World, id string) (r payments.Replay) {
	w.Helper()
	w.Await("the replay's end", func() (bool, string) {
		var err error
		r, err = w.Store.Replay(w.Context(), id)
		return err == nil && r.State == payments.ReplayCompleted, fmt.Sprintf("%+v %v", r, err)
	})
	return r
}

// TestWorkerKillerReplayed replays a payment that ends every worker which takes it: it ends six more, and is the same dead letter again, replayed once.
func TestWorkerKillerReplayed(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	killer := w.Order("killer")
	w.Expect(killer)
	w.StoreUnowned(map[string]world.Order{"": killer})
	kill := func(s payments.Step, id payments.ID) bool { return s == payments.StepAfterTake && id == killer.ID() }
	if deaths := w.KillUntilBuried(killer, payments.StepAfterTake); deaths != payments.AbandonedMax {
		t.Errorf("%d workers died, want %d", deaths, payments.AbandonedMax)
	}
	id := w.Replay()
	deaths := 0
	for l := theLetter(w); l.Replays == 0 || l.State != payments.DeadLetterOpen; {
		v := w.Start(world.WorkerOptions{Name: fmt.Sprintf("again %d", deaths+1), Stop: kill, Replays: runsReplays})
		w.Await("a death, or the dead letter again", func() (bool, string) {
			l = theLetter(w)
			return v.Gate.HasStopped(killer.ID()) || l.Replays > 0 && l.State == payments.DeadLetterOpen, "neither"
		})
		v.Kill() // its lease ends by itself: a clock put ahead would end the hold of whoever runs the replay, too
		if deaths++; deaths > 2*payments.AbandonedMax {
			t.Fatal("the payment ends one worker after another for ever")
		}
	}
	w.Start(world.WorkerOptions{Name: "healthy", Replays: runsReplays})
	r := mustEnd(w, id)
	if l := theLetter(w); l.Replays != 1 || l.Reason != payments.ReasonWorkerKilled || r.Results[payments.ReplayFailedAgain]+r.Results[payments.ReplaySucceeded] != 1 {
		t.Errorf("results %v; the dead letter: %s after %d replays", r.Results, l.Reason, l.Replays)
	}
	w.MustHaveSettled([]world.Order{killer})
	if a := w.MustBeGood(1); len(a.Charges) != 1 {
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
	}{"found": {world.RecordsTrue, payments.StatusSucceeded}, "not shown": {world.RecordsEmpty, payments.StatusNeedsReview}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world.NewOf(t, world.DeathTimes) // a call that was cut off before Stripe had it would be another story
			stripe := w.NewFront()
			stripe.Records.Store(world.RecordsAway)
			o := w.Order("order-1")
			w.Publish(o)
			sick := w.Start(world.WorkerOptions{Name: "sick", Gateway: func(g payments.Gateway) payments.Gateway { return lossy{g} }})
			w.Await("the dead letter", func() (bool, string) { return len(w.Letters()) == 1, "there is none" })
			if err := sick.Stop(); err != nil {
				t.Fatal(err)
			}
			w.Clock.Advance(25 * time.Hour)
			stripe.Records.Store(c.records)
			id := w.Replay()
			w.Start(world.WorkerOptions{Name: "mended", Replays: runsReplays})
			w.Await("a look-up, and what follows from it", func() (bool, string) {
				return w.Status(o.ID()).Final() || stripe.Reads.Load() > 0 && w.AbsenceNoted(o), string(w.Status(o.ID()))
			})
			w.Clock.Advance(2 * time.Hour)
			r := mustEnd(w, id)
			w.Clock.Advance(30 * 24 * time.Hour)
			before := w.Sim.Summary().Requests
			mustEnd(w, w.Replay())
			w.Rest()
			a := w.Account()
			if s := w.Status(o.ID()); s != c.want || r.Total != 1 {
				t.Errorf("the payment came to rest as %s, want %s; results %v", s, c.want, r.Results)
			}
			if l := theLetter(w); (l.State == payments.DeadLetterOpen) != (c.want == payments.StatusNeedsReview) {
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
