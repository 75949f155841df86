package paymentstest

import (
	"errors"

	"github.com/oncepay/oncepay/payments"
)

// lookByCustomer: of a customer's PaymentIntents the look-up finds the payment's own, in every status.
func (b *stripeBench) lookByCustomer() { b.lookFinds(b.Customer) }

// lookByWindow: without a customer it finds it among all that were created around its sends.
func (b *stripeBench) lookByWindow() { b.lookFinds("") }

func (b *stripeBench) lookFinds(customer string) {
	of := func(i *payments.Intent) { i.Customer = customer }
	manual := func(i *payments.Intent) { i.CaptureMethod = payments.CaptureManual }
	neighbour := b.settles(b.payment("neighbour", of), payments.ObservedAnswer, payments.StatusSucceeded)
	for key, c := range map[string]struct {
		change func(*payments.Intent)
		kind   payments.ObservationKind
		status payments.StripeStatus
	}{
		"succeeded": {method("pm_card_visa"), payments.ObservedAnswer, payments.StripeSucceeded},
		"held":      {manual, payments.ObservedAnswer, payments.StripeRequiresCapture},
		"declined":  {method("pm_card_visa_chargeDeclined"), payments.ObservedDecline, payments.StripeRequiresPaymentMethod},
	} {
		p := b.inDoubt(b.payment(key, of, c.change))
		o := b.submit(p, c.kind)
		if o.Object.ID == neighbour.Object.ID {
			b.t.Fatalf("%s: the answer is about %+v", key, o.Object)
		}
		found := b.finds(p, o.Object.ID)
		b.asked(p, &found, c.status)
		if found.Created.IsZero() || (c.status == payments.StripeRequiresPaymentMethod) != (found.LastError != nil) {
			b.t.Errorf("%s: found %+v", key, found)
		}
	}
}

// lookAbsent: a payment that was never executed is not there, although its neighbour is, and that is known for certain.
func (b *stripeBench) lookAbsent() {
	for _, customer := range []string{b.Customer, ""} {
		of := func(i *payments.Intent) { i.Customer = customer }
		b.settles(b.payment("neighbour"+customer, of), payments.ObservedAnswer, payments.StatusSucceeded)
		p := b.inDoubt(b.payment("absent"+customer, of))
		b.finds(p, "")
		// What is looked up and not there may be sent: Decide says so within the window.
		o := payments.Observation{Kind: payments.ObservedRecords, Account: b.account}
		if t, err := payments.Decide(p, o, b.Now(), payments.Policy{TriesMax: 20}); err != nil || !t.ThenSend {
			b.t.Errorf("absence is decided as %+v, %v", t, err)
		}
	}
}

// lookEnds: progress is asked before every page, and when it says that the ticket is lost nothing is read, and nothing proved.
func (b *stripeBench) lookEnds() {
	for _, customer := range []string{b.Customer, ""} {
		p := b.payment("k"+customer, func(i *payments.Intent) { i.Customer = customer })
		o := b.settles(p, payments.ObservedAnswer, payments.StatusSucceeded)
		p = b.inDoubt(p)
		asked := 0
		b.is(b.Gateway.Look(b.t.Context(), p, func() error { asked++; return errors.New("somebody else has the ticket") }), payments.ObservedNoRecords)
		if asked != 1 {
			b.t.Errorf("progress was asked %d times after it had said no, want once in all", asked)
		}
		seen := b.Gateway.Look(b.t.Context(), p, func() error { asked++; return nil })
		b.is(seen, payments.ObservedRecords)
		if asked < 2 || len(seen.Found) != 1 || seen.Found[0].ID != o.Object.ID {
			b.t.Errorf("found %+v, and progress was asked %d times", seen.Found, asked-1)
		}
	}
}

// retrieve reads a PaymentIntent again; one that Stripe does not have is observed as absent, and no name at all proves nothing.
func (b *stripeBench) retrieve() {
	p := b.payment("k", func(i *payments.Intent) { i.CaptureMethod = payments.CaptureManual })
	created := b.settles(p, payments.ObservedAnswer, payments.StatusRequiresCapture)
	read := func(id string, kind payments.ObservationKind) *payments.PaymentIntent {
		b.t.Helper()
		q := p
		q.Status, q.StripePaymentIntent = payments.StatusPending, id
		before := b.posts()
		o := b.Gateway.Retrieve(b.t.Context(), q)
		b.is(o, kind)
		b.leaves(before, 0)
		return o.Object
	}
	pi := read(created.Object.ID, payments.ObservedObject)
	b.asked(p, pi, payments.StripeRequiresCapture)
	if pi.ID != created.Object.ID {
		b.t.Errorf("retrieved %s, want %s", pi.ID, created.Object.ID)
	}
	if pi := read("pi_1ConformanceNobody", payments.ObservedObject); pi != nil {
		b.t.Errorf("a PaymentIntent that nobody created is %+v", pi)
	}
	for _, id := range []string{"", "pi_", "../account", created.Object.ID + "/cancel"} {
		if pi := read(id, payments.ObservedNoRecords); pi != nil {
			b.t.Errorf("%q was retrieved: %+v", id, pi)
		}
	}
}
