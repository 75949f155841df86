package followups

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

var kinds = []payments.Kind{payments.KindCapture, payments.KindCancel, payments.KindRefund}

// steps are those of somebody who works on a follow-up. A cancel has steps of its own names for its call.
var steps = []payments.Step{
	payments.StepBeforeTake, payments.StepAfterTake, payments.StepBeforeSubmit, payments.StepAfterSubmit, payments.StepBeforeRecord, payments.StepAfterRecord,
}

// way is how a follow-up comes to the owner that dies.
type way struct {
	name  string
	first payments.Step // where an owner before that one died; "": there was none
	blind bool          // what Stripe has cannot be read at first
}

// ways: as the first, after one that died with nothing sent, after one that died with its request at Stripe, and that again while readings fail.
var ways = []way{
	{name: "first"},
	{name: "takeover_unsent", first: payments.StepBeforeSubmit},
	{name: "takeover_sent", first: payments.StepAfterSubmit},
	{name: "takeover_blind", first: payments.StepAfterSubmit, blind: true},
}

// TestCrashMatrix kills a worker at every step, under every fault, while it captures, cancels and refunds; then a healthy one brings everything to rest,
// and each was done once. One world has one payment for each kind and fault. -run TestCrashMatrix/first/after_submit replays a world.
func TestCrashMatrix(t *testing.T) {
	t.Parallel()
	for turn, how := range ways {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			for i, step := range steps {
				if world.Scale > 1 && (i+turn)%2 == 0 {
					continue // the race detector is served as well by every second
				}
				t.Run(string(step), func(t *testing.T) {
					t.Parallel()
					crash(t, how, step)
				})
			}
		})
	}
}

// is reports whether a step is the one that the matrix calls so.
func is(s, step payments.Step) bool {
	switch step {
	case payments.StepBeforeSubmit:
		return s == step || s == payments.StepBeforeCancel
	case payments.StepAfterSubmit:
		return s == step || s == payments.StepAfterCancel
	}
	return s == step
}

// faultsOf are the faults of a world: all, or under the race detector every third, others for each step.
func faultsOf(step payments.Step) []string {
	var some []string
	for i, fault := range world.Faults {
		if world.Scale == 1 || (i+slices.Index(steps, step))%3 == 0 {
			some = append(some, fault)
		}
	}
	return some
}

// paid are payments that stand as the follow-ups want them: one for each kind and fault, and one without a fault.
func paid(w *world.World, faults []string) map[string]world.FollowUp {
	w.Helper()
	list := map[string]world.FollowUp{}
	var orders []world.Order
	for _, kind := range kinds {
		for n, fault := range append([]string{"none"}, faults...) {
			name, _, _ := strings.Cut(fault, ":")
			name = string(kind) + "_" + name
			o := w.Order(name)
			o.Held = kind != payments.KindRefund
			if n%2 == 1 {
				o.Lane = payments.LaneBulk
			}
			amount := int64(0) // all there is
			if kind != payments.KindCancel && n%3 != 0 {
				amount = o.Money.Amount/2 + int64(n)
			}
			orders = append(orders, o)
			list[name] = w.FollowUp(kind, o, "about-"+name, amount)
		}
	}
	w.Publish(orders...)
	payer := w.Start(world.WorkerOptions{Name: "payer"})
	w.Rest()
	if err := payer.Stop(); err != nil {
		w.Fatal(err)
	}
	return list
}

func crash(t *testing.T, how way, step payments.Step) {
	pace := world.Short
	pace.Lease *= 3 // all come to the step before the first to do so is taken from it: what was left twice is worked on alone, and would stop all others
	w, faults := world.NewOf(t, pace), faultsOf(step)
	list := paid(w, faults)
	w.StoreFollowUps(slices.Collect(maps.Values(list))...)
	for name, f := range list {
		for _, fault := range faults {
			if plain, _, _ := strings.Cut(fault, ":"); name == string(f.Kind)+"_"+plain {
				w.FaultFollowUp(f, fault, 1)
			}
		}
	}
	if how.blind {
		blindfold(w, list, faults)
	}
	if how.first != "" {
		die(w, "first", how.first, list)
		mustBeAtStripe(w, how.first == payments.StepAfterSubmit, list)
	}
	die(w, "victim", step, list)
	if broken, err := w.Store.TicketViolations(t.Context()); err != nil || len(broken) > 0 {
		t.Errorf("right after the death, ticket and status disagree: %+v %v", broken, err)
	}
	w.Start(world.WorkerOptions{Name: "healthy"})
	w.Rest()
	judge(w, t, list)
	met := map[string]bool{}
	for _, r := range w.Sim.Ledger().Requests {
		met[r.Method+" "+r.Path+" "+r.Fault] = true
	}
	for name, f := range list {
		if _, fault, _ := strings.Cut(name, "_"); fault != "none" && !slices.ContainsFunc(slices.Collect(maps.Keys(met)), func(seen string) bool {
			return strings.HasPrefix(seen, "POST "+w.StripePath(f)+" "+fault)
		}) {
			t.Errorf("no %s met the fault %s: the case shows nothing", f.Kind, fault)
		}
	}
}

// blindfold lets the next readings fail, in every way that one can: of all refunds, and of each PaymentIntent in its own fault's.
func blindfold(w *world.World, list map[string]world.FollowUp, faults []string) {
	w.Helper()
	rules := []stripesim.Rule{}
	for _, fault := range faults {
		rules = append(rules, stripesim.Rule{Match: stripesim.Match{Method: http.MethodGet, Path: "/v1/refunds"}, Fault: fault, Times: 3})
	}
	for name, f := range list {
		_, plain, _ := strings.Cut(name, "_")
		for _, fault := range faults {
			if own, _, _ := strings.Cut(fault, ":"); own == plain && f.Kind != payments.KindRefund {
				path := "/v1/payment_intents/" + w.FollowUpNow(f).StripePaymentIntent
				rules = append(rules, stripesim.Rule{Match: stripesim.Match{Method: http.MethodGet, Path: path}, Fault: fault, Times: 2})
			}
		}
	}
	for _, rule := range rules {
		if err := w.Sim.AddFault(rule); err != nil {
			w.Fatal(err)
		}
	}
}

// mustBeAtStripe wants that the owner who has died sent all follow-ups, or none.
func mustBeAtStripe(w *world.World, sent bool, list map[string]world.FollowUp) {
	w.Helper()
	want, keys := 0, map[string]bool{}
	if sent {
		want = len(list)
	}
	for _, r := range w.Sim.Ledger().Requests {
		if r.Method == http.MethodPost && r.Path != "/v1/payment_intents" {
			keys[r.IdempotencyKey] = true
		}
	}
	if len(keys) != want {
		w.Errorf("the first owner sent %d of %d follow-ups, want %d", len(keys), len(list), want)
	}
}

// die runs a worker until each follow-up has stopped at the step, or has its outcome without coming there, and kills it.
func die(w *world.World, name string, step payments.Step, list map[string]world.FollowUp) {
	w.Helper()
	// What has stopped keeps its slot, and stops again in another when its ticket is due once more: there must be slots left for those that have not come.
	victim := w.Start(world.WorkerOptions{Name: name, Concurrency: 8 * len(list), Stop: func(s payments.Step, _ payments.ID) bool { return is(s, step) }})
	w.Await("the death at "+string(step), func() (bool, string) {
		if step == payments.StepBeforeTake { // there is no follow-up yet, only the loop that takes
			return victim.Gate.HasStopped(payments.ID{}), "nothing was taken"
		}
		for _, f := range list {
			if !victim.Gate.HasStopped(f.ID()) && !w.FollowUpNow(f).Status.Final() {
				return false, f.Key + " is neither stopped nor settled"
			}
		}
		return true, ""
	})
	victim.Kill()
}

// judge wants the oracle's full consent for each case, each follow-up done, and no dead letter.
func judge(w *world.World, t *testing.T, list map[string]world.FollowUp) {
	t.Helper()
	w.Sim.ClearFaults()
	a := w.Account()
	for name, f := range list {
		t.Run(name, func(t *testing.T) {
			for _, finding := range a.Of(f.Order).Wrong() {
				t.Errorf("%s (replay: -run '^%s$')", finding, strings.ReplaceAll(t.Name(), "/", "$/^"))
			}
			if now := a.FollowUpRows[f.ID()]; now.Status != payments.StatusSucceeded {
				t.Errorf("it is %q for %q", now.Status, now.Payment.Reason)
			}
			if want, got := standing(f), a.Rows[f.Order.ID()]; got.Status != want.Status || got.AmountCaptured != want.AmountCaptured || got.AmountRefunded != want.AmountRefunded {
				t.Errorf("its payment is %s with %d captured and %d refunded, want %s, %d and %d",
					got.Status, got.AmountCaptured, got.AmountRefunded, want.Status, want.AmountCaptured, want.AmountRefunded)
			}
		})
	}
	for _, finding := range a.Wrong() {
		t.Error(finding)
	}
	if len(a.DeadLetters) > 0 {
		t.Errorf("dead letters, and none were due: %v", a.Reasons())
	}
	if n, want := done(a.Ledger), len(list)-len(list)/len(kinds); n != want {
		t.Errorf("Stripe has %d captures and refunds, want %d", n, want)
	}
}

// standing is what a payment must be once its follow-up is done.
func standing(f world.FollowUp) (p payments.Payment) {
	amount := cmp.Or(f.Amount, f.Order.Money.Amount)
	switch f.Kind {
	case payments.KindCapture:
		p.Status, p.AmountCaptured = payments.StatusSucceeded, amount
	case payments.KindCancel:
		p.Status = payments.StatusCanceled
	default:
		p.Status, p.AmountCaptured, p.AmountRefunded = payments.StatusSucceeded, f.Order.Money.Amount, amount
	}
	return p
}

// done counts the captures of what was held, and the refunds.
func done(l stripesim.Ledger) (n int) {
	for _, c := range l.Charges {
		if strings.Contains(fmt.Sprint(c.Metadata), string(payments.KindCapture)+"_") && c.AmountCaptured > 0 {
			n++
		}
	}
	return n + len(l.Refunds)
}
