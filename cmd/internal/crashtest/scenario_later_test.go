package crashtest

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripe"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// TestDetachedAndSentAgain: Stripe charged and kept nothing of its answer, the payment method was detached, and Stripe's records do not show the
// charge at first. So the request is sent again, and refused as invalid: that says nothing of the first one, which is found later.
func TestDetachedAndSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, steady)
	front := w.newFront()
	front.records.Store(recordsAway)
	o := w.order("order-1")
	o.method = w.postStripe("/v1/payment_methods/pm_card_visa/attach", "customer="+o.Money.Customer)
	w.fault(o, stripesim.FaultCommitThen503, 1)
	w.publish(o)
	w.start(workerOptions{name: "worker"})
	w.await("the unknown outcome", func() (bool, string) { s := w.status(o.id()); return s == payments.StatusUnknown, string(s) })
	w.postStripe("/v1/payment_methods/"+o.method+"/detach", "")
	front.records.Store(recordsEmpty)
	w.await("a second request, and its refusal", func() (bool, string) {
		sent := w.sentFor(o, 0)
		return len(sent) > 1 && sent[1].Status == http.StatusBadRequest, string(w.status(o.id()))
	})
	front.records.Store(recordsTrue)
	a := w.mustBeGood(0)
	story := w.story(o)
	for _, c := range story[:len(story)-1] {
		if c.status != payments.StatusUnknown || c.tries != 0 {
			t.Errorf("it was %v on the way", c)
		}
	}
	if story[len(story)-1] != paid || len(a.Charges) != 1 || a.Summary.PaymentIntents != 1 {
		t.Errorf("%d charges and %d PaymentIntents; the story is %v", len(a.Charges), a.Summary.PaymentIntents, story)
	}
}

// TestAccountChangedAtTakeover: an owner dies with its request at Stripe, and the next process has the key of another account. It looks nowhere and
// sends nothing, says why, and whoever has the first account's key again finds the charge.
func TestAccountChangedAtTakeover(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, short)
	if err := w.sim.SetKeys([]stripesim.Key{{Secret: stripeKey}, {Secret: otherKey, Account: otherAccount}}); err != nil {
		t.Fatal(err)
	}
	o := w.order("order-1")
	w.publish(o)
	owner := w.start(workerOptions{name: "owner", stop: func(s payments.Step, _ payments.ID) bool { return s == payments.StepAfterSubmit }})
	w.await("Stripe's answer", func() (bool, string) { return owner.gate.hasStopped(o.id()), "nobody has it" })
	owner.kill()
	next := w.start(workerOptions{name: "next", gateway: func(payments.Gateway) payments.Gateway {
		g, err := stripe.New(t.Context(), stripe.Options{
			Key: otherKey, URL: w.simURL, Namespace: namespace, Timeout: w.times.call, Clock: w.clock, Logger: w.logs.logger("next"),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.Close)
		return g
	}})
	w.await("two refusals", func() (bool, string) {
		return next.gate.hasSeen(payments.StepAfterRecord, o.id()) >= 2, string(w.status(o.id()))
	})
	refused := chapter{status: payments.StatusUnknown, reason: payments.ReasonAccountChanged}
	if p := w.mustStand(o, refused); !p.InDoubt || p.StripeAccount != stripesim.DefaultAccount {
		t.Errorf("it is pinned to %q, in doubt: %v", p.StripeAccount, p.InDoubt)
	}
	if err := next.stop(); err != nil {
		t.Error(err)
	}
	for _, r := range w.sim.Ledger().Requests {
		if r.Account == otherAccount && !slices.Contains([]string{"/v1/account", "/v1/balance"}, r.Path) {
			t.Errorf("%s %s reached another account", r.Method, r.Path)
		}
	}
	w.start(workerOptions{name: "mended"})
	a := w.mustBeGood(0)
	if story := w.story(o); !slices.Equal(story, []chapter{refused, paid}) {
		t.Errorf("the story is %v", story)
	}
	if len(a.Charges) != 1 || len(w.sentFor(o, 0)) != 1 || a.Ledger.Charges[0].Account != stripesim.DefaultAccount {
		t.Errorf("%d requests, charges %+v", len(w.sentFor(o, 0)), a.Ledger.Charges)
	}
}

// TestSettledLetterReplayedAMonthLater: a payment that ended its workers left a dead letter, and was found charged by a look-up soon after. A month later an operator
// replays the letter, which is open still: the payment has its outcome, and Stripe is asked nothing.
func TestSettledLetterReplayedAMonthLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.order("killer")
	w.publish(o)
	w.killUntilBuried(o, payments.StepBeforeRecord)
	w.start(workerOptions{name: "mended"})
	w.clock.advance(time.Hour)
	w.mustHaveSettled([]order{o})
	w.rest()
	if l := w.letters(); len(l) != 1 || l[0].State != payments.DeadLetterOpen {
		t.Fatalf("dead letters: %+v", l)
	}
	w.clock.advance(30 * 24 * time.Hour)
	before, told := w.sim.Summary().Requests, len(w.story(o))
	if got := w.replayAll(1); got[payments.ReplayAlreadySettled] != 1 || len(got) != 1 {
		t.Errorf("results: %v", got)
	}
	a := w.mustBeGood(1)
	if n := a.Summary.Requests - before; n != 0 || len(a.Charges) != 1 || a.Summary.PaymentIntents != 1 {
		t.Errorf("%d requests to Stripe; %d charges and %d PaymentIntents", n, len(a.Charges), a.Summary.PaymentIntents)
	}
	if story := w.story(o); len(story) != told || story[len(story)-1] != paid {
		t.Errorf("the replay told %d more: %v", len(story)-told, story)
	}
}
