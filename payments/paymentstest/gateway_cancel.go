package paymentstest

import (
	"errors"

	"github.com/oncepay/oncepay/payments"
)

// cancels asks once for the payment's PaymentIntent to be canceled.
func (b *stripeBench) cancels(p payments.Payment, id string, kind payments.ObservationKind) payments.Observation {
	b.t.Helper()
	asked, before := 0, b.posts()
	o := b.Gateway.Cancel(b.t.Context(), b.cancellation(p, id, func() error { asked++; return nil }))
	b.is(o, kind)
	b.leaves(before, 1)
	if asked != 1 {
		b.t.Errorf("MayLeave was asked %d times, want once", asked)
	}
	return o
}

func (b *stripeBench) cancellation(p payments.Payment, id string, mayLeave func() error) payments.Submission {
	p.Status, p.StripePaymentIntent = payments.StatusWaiting, id
	return payments.Submission{
		Payment: p, StripeKey: payments.StripeKey(b.Namespace, payments.KindCancel, p.TenantID, p.IdempotencyKey), MayLeave: mayLeave,
	}
}

// cancel: an on-session decline that its customer could still confirm is canceled, however often that is asked for, and shown as canceled
// wherever it is read.
func (b *stripeBench) cancel() {
	onSession := func(i *payments.Intent) { i.OffSession = false }
	p := b.payment("k", method("pm_card_visa_chargeDeclined"), onSession)
	declined := b.submit(p, payments.ObservedDecline)
	for range 2 {
		o := b.cancels(p, declined.Object.ID, payments.ObservedObject)
		b.asked(p, o.Object, payments.StripeCanceled)
		if o.Object.ID != declined.Object.ID || o.Object.AmountReceived != 0 {
			b.t.Errorf("canceled %+v, want %s", o.Object, declined.Object.ID)
		}
	}
	found := b.finds(b.inDoubt(p), declined.Object.ID)
	b.asked(p, &found, payments.StripeCanceled)
	// One whose customer has been asked to authenticate ends as well.
	p = b.payment("action", method("pm_card_authenticationRequired"), onSession)
	o := b.cancels(p, b.submit(p, payments.ObservedAnswer).Object.ID, payments.ObservedObject)
	b.asked(p, o.Object, payments.StripeCanceled)
}

// cancelTooLate: what has succeeded meanwhile is shown as succeeded, and what Stripe does not have as absent.
func (b *stripeBench) cancelTooLate() {
	p := b.payment("k")
	done := b.settles(p, payments.ObservedAnswer, payments.StatusSucceeded)
	o := b.cancels(p, done.Object.ID, payments.ObservedObject)
	b.asked(p, o.Object, payments.StripeSucceeded)
	if o.Object.AmountReceived != p.Amount {
		b.t.Errorf("%d were taken, want %d", o.Object.AmountReceived, p.Amount)
	}
	if o := b.cancels(b.payment("nobody"), "pi_1ConformanceNobody", payments.ObservedObject); o.Object != nil {
		b.t.Errorf("a PaymentIntent that nobody created is %+v", o.Object)
	}
}

// cancelHeldBack: what must not leave does not, and the PaymentIntent stands as it stood.
func (b *stripeBench) cancelHeldBack() {
	p := b.payment("k", func(i *payments.Intent) { i.CaptureMethod = payments.CaptureManual })
	id := b.settles(p, payments.ObservedAnswer, payments.StatusRequiresCapture).Object.ID
	yes := func() error { return nil }
	before := b.posts()
	b.is(b.Gateway.Cancel(b.t.Context(), b.cancellation(p, id, func() error { return errors.New("the lease is over") })), payments.ObservedHeldBack)
	b.is(b.Gateway.Cancel(b.canceled(), b.cancellation(p, id, yes)), payments.ObservedNotSent)
	for _, name := range []string{"", "pi_", "../account", id + "/confirm"} {
		b.is(b.Gateway.Cancel(b.t.Context(), b.cancellation(p, name, yes)), payments.ObservedHeldBack)
	}
	foreign := b.cancellation(p, id, yes)
	foreign.Payment.StripeAccount = "acct_1ConformanceForeign"
	if o := b.Gateway.Cancel(b.t.Context(), foreign); o.Kind != payments.ObservedForeignAccount {
		b.t.Errorf("a cancel on another account shows %s, want %s", o.Kind, payments.ObservedForeignAccount)
	}
	b.leaves(before, 0)
	found := b.finds(b.inDoubt(p), id)
	b.asked(p, &found, payments.StripeRequiresCapture)
}
