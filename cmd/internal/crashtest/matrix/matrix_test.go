package matrix

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// way is how a payment comes to the owner that dies at the step under test.
type way struct {
	name  string
	first payments.Step // where an owner before that one died; "" : there was none
	blind bool          // Stripe's records cannot be read at first
}

// ways: the first owner, one after an owner that died with nothing sent, and one after an owner that died with its request at Stripe; that
// again while look-ups fail in every way.
var ways = []way{
	{name: "first"},
	{name: "takeover_unsent", first: payments.StepBeforeSubmit},
	{name: "takeover_sent", first: payments.StepAfterSubmit},
	{name: "takeover_blind", first: payments.StepAfterSubmit, blind: true},
}

// TestCrashMatrix kills a worker at every step, under every fault, as the first owner of a payment, as a later one, and as the one that replays it
// once it was a dead letter; then a healthy worker brings everything to rest. One world has one payment for each fault, and all of them are stopped at the same step.
// -run TestCrashMatrix/first/after_submit/commit_then_503 replays one case.
func TestCrashMatrix(t *testing.T) {
	t.Parallel()
	for turn, how := range ways {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			for _, step := range someSteps(turn) {
				t.Run(string(step), func(t *testing.T) {
					t.Parallel()
					if step == payments.StepBeforeCancel || step == payments.StepAfterCancel {
						crashCanceling(t, how, step)
						return
					}
					crash(t, how, step)
				})
			}
		})
	}
	t.Run("replay", func(t *testing.T) {
		t.Parallel()
		for _, step := range someSteps(len(ways)) {
			t.Run(string(step), func(t *testing.T) {
				t.Parallel()
				crashReplayed(t, step, "")
			})
		}
		for _, step := range replaySteps {
			t.Run("item_"+string(step), func(t *testing.T) {
				t.Parallel()
				crashReplayed(t, "", step)
			})
		}
	})
}

// someSteps are those of a way: all of them. The race detector is served as well by every third, others for each way.
func someSteps(turn int) []payments.Step {
	if world.Scale == 1 {
		return payments.Steps()
	}
	var some []payments.Step
	for i, step := range payments.Steps() {
		if (i+turn)%3 == 0 {
			some = append(some, step)
		}
	}
	return some
}

// someFaults are those of a case: all of them. The race detector is served as well by every third, each of them at every third step.
func someFaults(step string) []string {
	if world.Scale == 1 {
		return world.Faults
	}
	turn := 0
	for _, c := range []byte(step) {
		turn += int(c)
	}
	var some []string
	for i, fault := range world.Faults {
		if (i+turn)%3 == 0 {
			some = append(some, fault)
		}
	}
	return some
}

// matrixOrders are one order for each of the faults, one without, and declined ones with an answer and without.
func matrixOrders(w *world.World, faults []string) map[string]world.Order {
	orders := map[string]world.Order{"none": w.Order("none")}
	for _, fault := range faults {
		name, _, _ := strings.Cut(fault, ":")
		orders[name] = w.Order(name)
		w.Fault(orders[name], fault, 1)
	}
	for name, fault := range map[string]string{
		"declined": "", "declined_unheard": stripesim.FaultCommitThen503, "declined_present": "", "declined_present_unheard": stripesim.FaultCommitThen503,
	} {
		o := w.Order(name)
		o.Method, o.Declines, o.Present = "pm_card_visa_chargeDeclined", true, strings.Contains(name, "present")
		orders[name] = o
		if fault != "" {
			w.Fault(o, fault, 1)
		}
	}
	for i, name := range slices.Sorted(maps.Keys(orders)) {
		if o := orders[name]; i%2 == 1 {
			o.Lane = payments.LaneBulk
			orders[name] = o
		}
	}
	return orders
}

// blind lets the next look-ups fail, in every way that one can.
func blind(w *world.World, faults []string) {
	w.Helper()
	for _, fault := range faults {
		rule := stripesim.Rule{Match: stripesim.Match{Method: http.MethodGet, Path: "/v1/payment_intents"}, Fault: fault, Times: 3}
		if err := w.Sim.AddFault(rule); err != nil {
			w.Fatal(err)
		}
	}
}

func crash(t *testing.T, how way, step payments.Step) {
	w, faults := world.New(t), someFaults(string(step))
	orders := matrixOrders(w, faults)
	ids := make([]payments.ID, 0, len(orders))
	for _, o := range orders {
		ids = append(ids, o.ID())
	}
	if how.blind {
		blind(w, faults)
	}
	taking := step == payments.StepBeforeTake || step == payments.StepAfterTake
	if how.first == "" && taking {
		w.StoreUnowned(orders) // the first owner is to come by Take
	}
	w.Publish(slices.Collect(maps.Values(orders))...)
	if how.first != "" {
		// A message that comes back to the dying owner would find its row and be acked, and never come to the next one; and a ticket whose lease is over
		// would be taken and settled.
		before := w.Start(world.WorkerOptions{Name: "first", Stop: func(s payments.Step, _ payments.ID) bool {
			return s == how.first || s == payments.StepBeforeAck || s == payments.StepBeforeTake
		}})
		w.Await("the first owner's death", func() (bool, string) { return allSeen(before.Gate, how.first, ids) })
		before.Kill()
	}
	victim := w.Start(world.WorkerOptions{Name: "victim", Stop: func(s payments.Step, _ payments.ID) bool { return s == step }})
	w.Await("the death at "+string(step), func() (bool, string) { return reached(w, victim.Gate, how, step, ids) })
	victim.Kill()
	if broken, err := w.Store.TicketViolations(t.Context()); err != nil || len(broken) > 0 {
		t.Errorf("right after the death, ticket and status disagree: %+v %v", broken, err)
	}
	w.Start(world.WorkerOptions{Name: "healthy"})
	w.Rest()
	judgeCases(w, t, orders)
	met := map[string]bool{}
	for _, r := range w.Sim.Ledger().Requests {
		met[r.Method+" "+r.Fault] = true
	}
	for _, fault := range faults {
		if !met["POST "+fault] {
			t.Errorf("no submission met the fault %s: the case shows nothing", fault)
		}
		if how.blind && !met["GET "+fault] {
			t.Errorf("no look-up met the fault %s: the case shows nothing", fault)
		}
	}
}

// allSeen reports whether all the payments have come to the step.
func allSeen(g *world.Gate, step payments.Step, ids []payments.ID) (bool, string) {
	for _, id := range ids {
		if g.HasSeen(step, id) == 0 {
			return false, id.String() + " has not come to " + string(step)
		}
	}
	return true, ""
}

// judgeCases wants the oracle's full consent for each case of the matrix, and no dead letter.
func judgeCases(w *world.World, t *testing.T, orders map[string]world.Order) {
	t.Helper()
	w.Sim.ClearFaults()
	a := w.Account()
	for name, o := range orders {
		t.Run(name, func(t *testing.T) {
			for _, finding := range a.Of(o).Wrong() {
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
	if len(a.DeadLetters) > 0 {
		t.Errorf("dead letters, and none were due: %v", a.Reasons())
	}
}

// reached reports whether the victim is where it is to die: every payment has stopped at the step. Two steps are special. Before a Take there
// is no payment yet, only the loop that takes has stopped. And a payment whose earlier owner sent its request is not sent again where Stripe's
// records have it: it is settled instead.
func reached(w *world.World, g *world.Gate, how way, step payments.Step, ids []payments.ID) (bool, string) {
	if step == payments.StepBeforeTake {
		return g.HasStopped(payments.ID{}), "nothing was taken"
	}
	if how.first != payments.StepAfterSubmit || step != payments.StepBeforeSubmit && step != payments.StepAfterSubmit {
		return world.AllStopped(g, ids)
	}
	for _, id := range ids {
		if !g.HasStopped(id) && w.Status(id).HasTicket() {
			return false, id.String() + " is neither sent again nor settled"
		}
	}
	return true, ""
}
