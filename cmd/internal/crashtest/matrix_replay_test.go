package crashtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

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

// unreachable obtains no connection to Stripe.
type unreachable struct{ payments.Gateway }

func (g unreachable) Submit(_ context.Context, s payments.Submission) payments.Observation {
	return payments.Observation{Kind: payments.ObservedNotSent, Detail: "no connection was obtained"}
}

// graves are dead letters of every kind that a replay can take up.
type graves struct {
	orders map[string]order // given up, or published for a tenant that was not there
	poison order            // can never become a payment
	ids    []payments.ID
}

// dig fills a world with dead letters: of each order one payment that was given up without anything sent, and one message that came before its
// tenant; and of one message that is no intent at all.
func (w *world) dig(orders map[string]order) graves {
	w.Helper()
	g := graves{orders: maps.Clone(orders)}
	for name, o := range orders {
		late := o
		late.TenantID, late.lane = latecomer, payments.LaneInteractive
		late.Money.Customer += "late"
		g.orders["late_"+name] = late
	}
	for _, o := range g.orders {
		g.ids = append(g.ids, o.id())
	}
	w.publish(slices.Collect(maps.Values(g.orders))...)
	g.poison = w.order("poison")
	g.poison.Refused = true
	g.poison.Money.Customer = "nobody"
	w.expect(g.poison)
	w.send(w.intentSubject(tenant), []byte(`{"idempotency_key":"poison","amount":4200,"amount":4200}`), nil)
	w.acknowledged(g.poison.id())
	digger := w.start(workerOptions{name: "digger", triesMax: 1, gateway: func(g payments.Gateway) payments.Gateway { return unreachable{g} }})
	w.rest()
	if err := digger.stop(); err != nil {
		w.Fatal(err)
	}
	if letters := w.letters(); len(letters) != len(g.orders)+1 {
		w.Fatalf("%d dead letters, want %d", len(letters), len(g.orders)+1)
	}
	if n := w.sim.Summary().Posts; n > 0 {
		w.Fatalf("%d requests were sent before the replay", n)
	}
	if _, err := w.store.CreateTenant(w.Context(), postgres.Tenant{ID: latecomer}); err != nil {
		w.Fatal(err)
	}
	return g
}

// replay makes a replay of all open dead letters.
func (w *world) replay() string {
	w.Helper()
	made, err := w.store.CreateReplay(w.Context(), payments.NewReplay{Operation: payments.Operation{Actor: "matrix"}})
	if err != nil {
		w.Fatal(err)
	}
	return made.ID
}

// mustComplete waits until a replay is complete, and until all is at rest.
func (w *world) mustComplete(id string) payments.Replay {
	w.Helper()
	var r payments.Replay
	w.await("the replay's end", func() (bool, string) {
		var err error
		r, err = w.store.Replay(w.Context(), id)
		return err == nil && r.State == payments.ReplayCompleted, fmt.Sprintf("%+v %v", r, err)
	})
	w.rest()
	sum := 0
	for _, n := range r.Results {
		sum += n
	}
	if sum != r.Total || r.Issued != r.Total {
		w.Errorf("a complete replay of %d has %d results %v and %d begun", r.Total, sum, r.Results, r.Issued)
	}
	return r
}

// crashReplayed replays dead letters of every kind, and ends the process that replays them: its runner, or its worker at one of the steps of what was
// taken up. Another goes on. Whatever was replayed is charged once, or is dead again, once, and counted.
func crashReplayed(t *testing.T, payment payments.Step, runner deadletter.Step) {
	pace := short
	pace.lease = 3 * time.Second // all come to the step before the first to do so is taken from it
	w := newWorldOf(t, pace)
	orders, meet := matrixOrders(w, someFaults(string(payment)+string(runner))), func(payments.ID) {}
	if payment == payments.StepBeforeCancel || payment == payments.StepAfterCancel {
		orders, meet = w.canceling(false)
	}
	g := w.dig(orders)
	id := w.replay()
	if payment == payments.StepBeforeAdmit || payment == payments.StepAfterAdmit || payment == payments.StepBeforeAck || payment == payments.StepAfterAck {
		w.publish(slices.Collect(maps.Values(g.orders))...) // repeats come in while their dead letters are replayed
	}
	nth := 0
	victim := w.start(workerOptions{
		name: "victim", concurrency: 8 * len(g.ids), watch: func(s payments.Step, id payments.ID) {
			if s == payments.StepBeforeCancel && s != payment {
				meet(id)
			}
		},
		stop: func(s payments.Step, _ payments.ID) bool { return s == payment },
		replays: func(s deadletter.Step) bool {
			if s == runner {
				nth++
			}
			return nth > len(orders)/3 // in the middle of its work
		},
	})
	w.await("the death", func() (bool, string) {
		switch {
		case runner != "":
			return victim.replaying.hasStopped(payments.ID{}), "the runner does not come to " + string(runner)
		case payment == payments.StepBeforeTake:
			return victim.gate.hasStopped(payments.ID{}), "nothing was taken"
		}
		for _, o := range g.orders {
			p := w.paymentOf(o)
			if !victim.gate.hasStopped(o.id()) && !p.Status.Final() {
				return false, fmt.Sprintf("%s %s is %q and has not stopped", o.TenantID, o.Key, p.Status)
			}
		}
		return true, ""
	})
	victim.kill()
	if broken, err := w.store.TicketViolations(t.Context()); err != nil || len(broken) > 0 {
		t.Errorf("right after the death, ticket and status disagree: %+v %v", broken, err)
	}
	w.start(workerOptions{name: "healthy", concurrency: 8 * len(g.ids), replays: func(deadletter.Step) bool { return false }, watch: func(s payments.Step, id payments.ID) {
		if s == payments.StepBeforeCancel {
			meet(id)
		}
	}})
	first := w.mustComplete(id)
	w.judgeReplay(t, g, first, 1)
	again := w.mustComplete(w.replay())
	w.judgeReplay(t, g, again, 2)
	before := w.sim.Summary().Requests
	if nothing := w.mustComplete(w.replay()); nothing.Total != 1 || nothing.Results[payments.ReplayFailedAgain] != 1 {
		t.Errorf("a third replay found %d to do: %v; only the poison is left", nothing.Total, nothing.Results)
	}
	if n := w.sim.Summary().Requests - before; n != 0 {
		t.Errorf("replaying what is settled asked Stripe %d times", n)
	}
}

// judgeReplay holds the world against what a replay says it did.
func (w *world) judgeReplay(t *testing.T, g graves, r payments.Replay, times int) {
	t.Helper()
	w.sim.ClearFaults()
	a := w.account()
	if len(a.DeadLetters) != len(g.orders)+1 {
		t.Errorf("%d dead letters, want those of before: %v", len(a.DeadLetters), a.reasons())
	}
	unread := 0 // a message is not read again whose reading ended a process
	for _, l := range a.Letters {
		poison := l.IdempotencyKey == g.poison.Key && l.TenantID == tenant
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
		part := a.of(o)
		if len(part.Payments) == 0 && unread > 0 {
			continue
		}
		t.Run(fmt.Sprintf("%s_%d", name, times), func(t *testing.T) {
			for _, finding := range part.wrong() {
				t.Errorf("%s (replay: -run '^%s$')", finding, strings.ReplaceAll(t.Name(), "/", "$/^"))
			}
			if o.Declines && o.present {
				w.mustBeCanceled(t, a, o)
			}
		})
	}
	for _, finding := range a.wrong() {
		t.Error(finding)
	}
}

// paymentOf is an order's payment, zero when there is none.
func (w *world) paymentOf(o order) payments.Payment {
	w.Helper()
	p, err := w.store.Find(w.Context(), o.TenantID, o.id())
	if err != nil && payments.ErrorCode(err) != payments.CodeNotFound {
		w.Fatal(err)
	}
	return p
}
