package matrix

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/consumer/deadletter"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
)

// latecomer is a tenant that is made when messages for it are dead letters already.
const latecomer = "latecomer"

// replaySteps are those of a replay's runner.
var replaySteps = []deadletter.Step{
	deadletter.StepClaimed, deadletter.StepIssued, deadletter.StepStarted, deadletter.StepRead, deadletter.StepAdmitted, deadletter.StepFinished,
}

// graves are dead letters of every kind that a replay can take up.
type graves struct {
	orders map[string]world.Order // given up, or published for a tenant that was not there
	poison world.Order            // can never become a payment
	ids    []payments.ID
}

// dig fills a world with dead letters: of each order one payment that was given up without anything sent, and one message that came before its
// tenant; and of one message that is no intent at all.
func dig(w *world.World, orders map[string]world.Order) graves {
	w.Helper()
	g := graves{orders: maps.Clone(orders)}
	for name, o := range orders {
		late := o
		late.TenantID, late.Lane = latecomer, payments.LaneInteractive
		late.Money.Customer += "late"
		g.orders["late_"+name] = late
	}
	for _, o := range g.orders {
		g.ids = append(g.ids, o.ID())
	}
	w.Publish(slices.Collect(maps.Values(g.orders))...)
	g.poison = w.Order("poison")
	g.poison.Refused = true
	g.poison.Money.Customer = "nobody"
	w.Expect(g.poison)
	w.Send(w.IntentSubject(world.Tenant), []byte(`{"idempotency_key":"poison","amount":4200,"amount":4200}`), nil)
	w.Acknowledged(g.poison.ID())
	digger := w.Start(world.WorkerOptions{Name: "digger", TriesMax: 1, Gateway: func(g payments.Gateway) payments.Gateway { return world.Unreachable{Gateway: g} }})
	w.Rest()
	if err := digger.Stop(); err != nil {
		w.Fatal(err)
	}
	if letters := w.Letters(); len(letters) != len(g.orders)+1 {
		w.Fatalf("%d dead letters, want %d", len(letters), len(g.orders)+1)
	}
	if n := w.Sim.Summary().Posts; n > 0 {
		w.Fatalf("%d requests were sent before the replay", n)
	}
	if _, err := w.Store.CreateTenant(w.Context(), postgres.Tenant{ID: latecomer}); err != nil {
		w.Fatal(err)
	}
	return g
}

// crashReplayed replays dead letters of every kind, and ends the process that replays them: its runner, or its worker at one of the steps of what was
// taken up. Another goes on. Whatever was replayed is charged once, or is dead again, once, and counted.
func crashReplayed(t *testing.T, payment payments.Step, runner deadletter.Step) {
	pace := world.Short
	pace.Lease = 3 * time.Second // all come to the step before the first to do so is taken from it
	w := world.NewOf(t, pace)
	orders, meet := matrixOrders(w, someFaults(string(payment)+string(runner))), func(payments.ID) {}
	if payment == payments.StepBeforeCancel || payment == payments.StepAfterCancel {
		orders, meet = canceling(w, false)
	}
	g := dig(w, orders)
	id := w.Replay()
	if payment == payments.StepBeforeAdmit || payment == payments.StepAfterAdmit || payment == payments.StepBeforeAck || payment == payments.StepAfterAck {
		w.Publish(slices.Collect(maps.Values(g.orders))...) // repeats come in while their dead letters are replayed
	}
	nth := 0
	victim := w.Start(world.WorkerOptions{
		Name: "victim", Concurrency: 8 * len(g.ids), Watch: func(s payments.Step, id payments.ID) {
			if s == payments.StepBeforeCancel && s != payment {
				meet(id)
			}
		},
		Stop: func(s payments.Step, _ payments.ID) bool { return s == payment },
		Replays: func(s deadletter.Step) bool {
			if s == runner {
				nth++
			}
			return nth > len(orders)/3 // in the middle of its work
		},
	})
	w.Await("the death", func() (bool, string) {
		switch {
		case runner != "":
			return victim.Replaying.HasStopped(payments.ID{}), "the runner does not come to " + string(runner)
		case payment == payments.StepBeforeTake:
			return victim.Gate.HasStopped(payments.ID{}), "nothing was taken"
		}
		stopped, waits := false, ""
		for _, o := range g.orders {
			if victim.Gate.HasStopped(o.ID()) {
				stopped = true
			} else if p := paymentOf(w, o); !p.Status.Final() {
				waits = fmt.Sprintf("%s %s is %q and has not stopped", o.TenantID, o.Key, p.Status)
			}
		}
		return waits == "" || stopped && victim.Tripped.Load(), waits // a probe that has stopped keeps the others waiting
	})
	victim.Kill()
	if broken, err := w.Store.TicketViolations(t.Context()); err != nil || len(broken) > 0 {
		t.Errorf("right after the death, ticket and status disagree: %+v %v", broken, err)
	}
	w.Start(world.WorkerOptions{Name: "healthy", Concurrency: 8 * len(g.ids), Replays: func(deadletter.Step) bool { return false }, Watch: func(s payments.Step, id payments.ID) {
		if s == payments.StepBeforeCancel {
			meet(id)
		}
	}})
	first := w.MustComplete(id)
	judgeReplay(w, t, g, first, 1)
	again := w.MustComplete(w.Replay())
	judgeReplay(w, t, g, again, 2)
	before := w.Sim.Summary().Requests
	if nothing := w.MustComplete(w.Replay()); nothing.Total != 1 || nothing.Results[payments.ReplayFailedAgain] != 1 {
		t.Errorf("a third replay found %d to do: %v; only the poison is left", nothing.Total, nothing.Results)
	}
	if n := w.Sim.Summary().Requests - before; n != 0 {
		t.Errorf("replaying what is settled asked Stripe %d times", n)
	}
}

// judgeReplay holds the world against what a replay says it did.
func judgeReplay(w *world.World, t *testing.T, g graves, r payments.Replay, times int) {
	t.Helper()
	w.Sim.ClearFaults()
	a := w.Account()
	if len(a.DeadLetters) != len(g.orders)+1 {
		t.Errorf("%d dead letters, want those of before: %v", len(a.DeadLetters), a.Reasons())
	}
	unread := 0 // a message is not read again whose reading ended a process
	for _, l := range a.Letters {
		poison := l.IdempotencyKey == g.poison.Key && l.TenantID == world.Tenant
		killed := l.Reason == payments.ReasonWorkerKilled && l.State == payments.DeadLetterOpen
		if killed {
			unread++
		}
		switch {
		case poison && !killed && (l.State != payments.DeadLetterOpen || l.Replays != times || l.Reason != payments.ReasonUndecodable):
			t.Errorf("the poison is %s for %s after %d replays, want open after %d", l.State, l.Reason, l.Replays, times)
		case !poison && !killed && l.State != payments.DeadLetterReplayed, l.Replays < 1, l.Replays > times:
			t.Errorf("the dead letter of %s %s is %s after %d replays", l.TenantID, l.IdempotencyKey, l.State, l.Replays)
		}
	}
	if unread > 1 || unread > 0 && times > 1 {
		t.Errorf("%d messages were given up for one death", unread)
	}
	if times == 1 {
		declines := 0
		for _, o := range g.orders {
			if o.Declines {
				declines++
			}
		}
		if got, most := r.Results[payments.ReplayFailedAgain], declines+1+unread; got > most || r.Results[payments.ReplayConflict]+r.Results[payments.ReplaySkipped] > 0 {
			t.Errorf("results %v, with %d that decline", r.Results, declines)
		}
	}
	for name, o := range g.orders {
		part := a.Of(o)
		if len(part.Payments) == 0 && unread > 0 {
			continue
		}
		t.Run(fmt.Sprintf("%s_%d", name, times), func(t *testing.T) {
			for _, finding := range part.Wrong() {
				t.Errorf("%s (replay: -run '^%s$')", finding, strings.ReplaceAll(t.Name(), "/", "$/^"))
			}
			if o.Declines && o.Present {
				mustBeCanceled(w, t, a, o)
			}
		})
	}
	for _, finding := range a.Wrong() {
		t.Error(finding)
	}
}

// paymentOf is an order's payment, zero when there is none.
func paymentOf(w *world.World, o world.Order) payments.Payment {
	w.Helper()
	p, err := w.Store.Find(w.Context(), o.TenantID, o.ID())
	if err != nil && payments.ErrorCode(err) != payments.CodeNotFound {
		w.Fatal(err)
	}
	return p
}
