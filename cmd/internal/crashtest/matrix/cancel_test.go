package matrix

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// canceling are declined orders whose customers are present, one for each fault that the cancel of their PaymentIntent is to meet, and one without.
// blind: so does the reading of it.
func canceling(w *world.World, blind bool) (orders map[string]world.Order, meet func(payments.ID)) {
	w.Helper()
	orders = map[string]world.Order{}
	byID := map[payments.ID]string{}
	for _, fault := range append([]string{"none"}, world.Faults...) {
		name, _, _ := strings.Cut(fault, ":")
		o := w.Order(name)
		o.Method, o.Declines, o.Present = "pm_card_visa_chargeDeclined", true, true
		if len(orders)%2 == 1 {
			o.Lane = payments.LaneBulk
		}
		orders[name] = o
		if fault != "none" {
			byID[o.ID()] = fault
		}
	}
	var mu sync.Mutex
	return orders, func(id payments.ID) { // called when the cancel is about to leave, once its PaymentIntent is known
		mu.Lock()
		fault, due := byID[id]
		delete(byID, id)
		mu.Unlock()
		if !due {
			return
		}
		p, err := w.Store.Find(w.Context(), world.Tenant, id)
		if err != nil {
			w.Error(err)
			return
		}
		path := "/v1/payment_intents/" + p.StripePaymentIntent
		rules := []stripesim.Rule{{Match: stripesim.Match{Path: path + "/cancel"}, Fault: fault, Times: 1}}
		if blind {
			rules = append(rules, stripesim.Rule{Match: stripesim.Match{Method: http.MethodGet, Path: path}, Fault: fault, Times: 2})
		}
		for _, rule := range rules {
			if err := w.Sim.AddFault(rule); err != nil {
				w.Error(err)
			}
		}
	}
}

// crashCanceling stops dead around the cancel of declined payments, whose customers could still confirm them: as the first that cancels, and after
// an owner that died before its cancel left, or behind it. None is charged, all have failed, and nothing is left at Stripe that could be confirmed.
func crashCanceling(t *testing.T, how way, step payments.Step) {
	before := map[payments.Step]payments.Step{payments.StepBeforeSubmit: payments.StepBeforeCancel, payments.StepAfterSubmit: payments.StepAfterCancel}
	w := world.New(t)
	orders, meet := canceling(w, how.blind)
	ids := make([]payments.ID, 0, len(orders))
	for _, o := range orders {
		ids = append(ids, o.ID())
	}
	dying := func(at payments.Step) func(payments.Step, payments.ID) bool {
		return func(s payments.Step, id payments.ID) bool {
			if s == payments.StepBeforeCancel && s != at {
				meet(id)
			}
			return s == at
		}
	}
	w.Publish(slices.Collect(maps.Values(orders))...)
	for i, at := range []payments.Step{before[how.first], step} {
		if at == "" {
			continue
		}
		victim := w.Start(world.WorkerOptions{Name: []string{"first", "victim"}[i], Stop: dying(at)})
		w.Await("the death at "+string(at), func() (bool, string) {
			for _, id := range ids { // what was canceled, and was read as such, is not canceled again
				if !victim.Gate.HasStopped(id) && (i == 0 || w.Status(id).HasTicket()) {
					return false, id.String() + " is neither stopped nor settled"
				}
			}
			return true, ""
		})
		victim.Kill()
	}
	healthy := dying("")
	w.Start(world.WorkerOptions{Name: "healthy", Watch: func(s payments.Step, id payments.ID) { healthy(s, id) }})
	w.Rest()
	judgeCases(w, t, orders)
	met := map[string]bool{}
	for _, r := range w.Sim.Ledger().Requests {
		if strings.HasSuffix(r.Path, "/cancel") {
			met[r.Fault] = true
		}
	}
	for _, fault := range world.Faults {
		if !met[fault] {
			t.Errorf("no cancel met the fault %s: the case shows nothing", fault)
		}
	}
}

// mustBeCanceled wants a declined payment to have failed, and to have left nothing at Stripe that its customer could still confirm.
func mustBeCanceled(w *world.World, t *testing.T, a world.Account, o world.Order) {
	t.Helper()
	p := a.Rows[o.ID()]
	if p.Status != payments.StatusFailed || p.Failure == nil || p.Failure.Code != "card_declined" {
		t.Errorf("the payment is %s with %+v, want failed with card_declined", p.Status, p.Failure)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.SimURL+"/v1/payment_intents?customer="+o.Money.Customer, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+world.StripeKey)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var list struct {
		Data []struct{ ID, Status string } `json:"data"`
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	for _, pi := range list.Data {
		if pi.Status != "canceled" {
			t.Errorf("%s of the declined payment is %s at Stripe, where its customer could still confirm it", pi.ID, pi.Status)
		}
	}
	if len(list.Data) == 0 {
		t.Error("Stripe has no PaymentIntent of the payment: the case shows nothing")
	}
}
