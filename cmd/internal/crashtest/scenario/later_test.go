package scenario

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripe"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// TestDetachedAndSentAgain: Stripe charged and kept nothing of its answer, the payment method was detached, and Stripe's records do not show the
// charge at first. So the request is sent again, and refused as invalid: that says nothing of the first one, which is found later.
func TestDetachedAndSentAgain(t *testing.T) {
	t.Parallel()
	w := world.NewOf(t, steady)
	front := w.NewFront()
	front.Records.Store(world.RecordsAway)
	o := w.Order("order-1")
	o.Method = w.PostStripe("/v1/payment_methods/pm_card_visa/attach", "customer="+o.Money.Customer)
	w.Fault(o, stripesim.FaultCommitThen503, 1)
	w.Publish(o)
	w.Start(world.WorkerOptions{Name: "worker"})
	w.Await("the unknown outcome", func() (bool, string) { s := w.Status(o.ID()); return s == payments.StatusUnknown, string(s) })
	w.PostStripe("/v1/payment_methods/"+o.Method+"/detach", "")
	front.Records.Store(world.RecordsEmpty)
	w.Await("a second request, and its refusal", func() (bool, string) {
		sent := sentFor(w, o, 0)
		return len(sent) > 1 && sent[1].Status == http.StatusBadRequest, string(w.Status(o.ID()))
	})
	front.Records.Store(world.RecordsTrue)
	a := w.MustBeGood(0)
	story := story(w, o)
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
	w := world.NewOf(t, world.Short)
	if err := w.Sim.SetKeys([]stripesim.Key{{Secret: world.StripeKey}, {Secret: world.OtherKey, Account: world.OtherAccount}}); err != nil {
		t.Fatal(err)
	}
	o := w.Order("order-1")
	w.Publish(o)
	owner := w.Start(world.WorkerOptions{Name: "owner", Stop: func(s payments.Step, _ payments.ID) bool { return s == payments.StepAfterSubmit }})
	w.Await("Stripe's answer", func() (bool, string) { return owner.Gate.HasStopped(o.ID()), "nobody has it" })
	owner.Kill()
	next := w.Start(world.WorkerOptions{Name: "next", Gateway: func(payments.Gateway) payments.Gateway {
		var g *stripe.Gateway
		w.Await("Stripe, at start", func() (bool, string) {
			var err error
			g, err = stripe.New(t.Context(), stripe.Options{
				Key: world.OtherKey, URL: w.SimURL, Namespace: world.Namespace, Timeout: w.Times.Call, Clock: w.Clock, Logger: w.Logs.Logger("next"),
			})
			return err == nil, fmt.Sprint(err)
		})
		t.Cleanup(g.Close)
		return g
	}})
	w.Await("two refusals", func() (bool, string) {
		return next.Gate.HasSeen(payments.StepAfterRecord, o.ID()) >= 2, string(w.Status(o.ID()))
	})
	refused := chapter{status: payments.StatusUnknown, reason: payments.ReasonAccountChanged}
	if p := mustStand(w, o, refused); !p.InDoubt || p.StripeAccount != stripesim.DefaultAccount {
		t.Errorf("it is pinned to %q, in doubt: %v", p.StripeAccount, p.InDoubt)
	}
	if err := next.Stop(); err != nil {
		t.Error(err)
	}
	for _, r := range w.Sim.Ledger().Requests {
		if r.Account == world.OtherAccount && !slices.Contains([]string{"/v1/account", "/v1/balance"}, r.Path) {
			t.Errorf("%s %s reached another account", r.Method, r.Path)
		}
	}
	w.Start(world.WorkerOptions{Name: "mended"})
	a := w.MustBeGood(0)
	if story := story(w, o); !slices.Equal(story, []chapter{refused, paid}) {
		t.Errorf("the story is %v", story)
	}
	if len(a.Charges) != 1 || len(sentFor(w, o, 0)) != 1 || a.Ledger.Charges[0].Account != stripesim.DefaultAccount {
		t.Errorf("%d requests, charges %+v", len(sentFor(w, o, 0)), a.Ledger.Charges)
	}
}

// TestSettledLetterReplayedAMonthLater: a payment that ended its workers left a dead letter, and was found charged by a look-up soon after. A month later an operator
// replays the letter, which is open still: the payment has its outcome, and Stripe is asked nothing.
func TestSettledLetterReplayedAMonthLater(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	o := w.Order("killer")
	w.Publish(o)
	w.KillUntilBuried(o, payments.StepBeforeRecord)
	w.Start(world.WorkerOptions{Name: "mended"})
	w.Clock.Advance(time.Hour)
	w.MustHaveSettled([]world.Order{o})
	w.Rest()
	if l := w.Letters(); len(l) != 1 || l[0].State != payments.DeadLetterOpen {
		t.Fatalf("dead letters: %+v", l)
	}
	w.Clock.Advance(30 * 24 * time.Hour)
	before, told := w.Sim.Summary().Requests, len(story(w, o))
	if got := w.ReplayAll(1); got[payments.ReplayAlreadySettled] != 1 || len(got) != 1 {
		t.Errorf("results: %v", got)
	}
	a := w.MustBeGood(1)
	if n := a.Summary.Requests - before; n != 0 || len(a.Charges) != 1 || a.Summary.PaymentIntents != 1 {
		t.Errorf("%d requests to Stripe; %d charges and %d PaymentIntents", n, len(a.Charges), a.Summary.PaymentIntents)
	}
	if story := story(w, o); len(story) != told || story[len(story)-1] != paid {
		t.Errorf("the replay told %d more: %v", len(story)-told, story)
	}
}
