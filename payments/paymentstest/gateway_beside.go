package paymentstest

import (
	"time"

	"github.com/oncepay/oncepay/payments"
)

// eventsWithin is how long Stripe may take until it lists an event.
const eventsWithin = 30 * time.Second

// beside does something at Stripe past the Gateway.
func (b *stripeBench) beside(path, form string) string {
	b.t.Helper()
	id, err := b.Post(path, form)
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

// lookInEvents: a PaymentIntent of the payment's that its customer's list does not show, since it has no customer, is found all the same; and a
// person must look, since it is not what was asked for.
func (b *stripeBench) lookInEvents() {
	p := b.payment("k", func(i *payments.Intent) { i.OffSession = false })
	other := p.Intent
	other.Customer = ""
	form, err := b.Body(other)
	if err != nil {
		b.t.Fatal(err)
	}
	id := b.beside("/v1/payment_intents", form)
	p = b.inDoubt(p)
	var found []payments.PaymentIntent
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for give := time.Now().Add(eventsWithin); len(found) == 0 && time.Now().Before(give); {
		if found = b.look(p); len(found) == 0 {
			<-tick.C
		}
	}
	if len(found) != 1 || found[0].ID != id || found[0].Customer != "" || found[0].Status != payments.StripeSucceeded {
		b.t.Fatalf("Stripe's records show %+v, want %s alone", found, id)
	}
	t, err := payments.Decide(p, payments.Observation{Kind: payments.ObservedRecords, Account: b.account, Found: found}, b.Now(), payments.Policy{TriesMax: 20})
	if err != nil || t.Status != payments.StatusNeedsReview {
		b.t.Errorf("decided as %s (%s), %v", t.Status, t.Reason, err)
	}
}

// detached: a payment method that is attached to the customer charges it, and once it is detached it is refused; what was charged stays so under
// its own key.
func (b *stripeBench) detached() {
	pm := b.beside("/v1/payment_methods/pm_card_visa/attach", "customer="+b.Customer)
	p := b.payment("k", method(pm))
	first := b.settles(p, payments.ObservedAnswer, payments.StatusSucceeded)
	b.beside("/v1/payment_methods/"+pm+"/detach", "")
	late := b.payment("late", method(pm))
	o := b.settles(late, payments.ObservedInvalid, payments.StatusRejected)
	if o.Failure == nil || o.Failure.Message == "" || o.Object != nil {
		b.t.Errorf("the failure is %+v", o.Failure)
	}
	// Had an earlier send of it been in doubt, the refusal would prove nothing.
	if t, err := payments.Decide(b.inDoubt(late), o, b.Now(), payments.Policy{TriesMax: 20}); err != nil || t.Status != payments.StatusUnknown {
		b.t.Errorf("in doubt, the refusal is decided as %s (%s), %v", t.Status, t.Reason, err)
	}
	b.finds(b.inDoubt(late), "")
	if again := b.submit(b.inDoubt(p), payments.ObservedAnswer); !again.Replayed || again.Object.ID != first.Object.ID {
		b.t.Errorf("under the first key: %+v", again)
	}
}
