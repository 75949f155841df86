package paymentstest

import (
	"testing"

	"github.com/oncepay/oncepay/payments"
)

// Fault is something that can befall a POST on its way, and what that proves.
type Fault struct {
	Name string
	// Kind is what the call shows; "" : the answer that it would have shown without it.
	Kind payments.ObservationKind
	// Executed says that what was asked for has been done, and Stored that Stripe remembers so under the key. Stays says that what it remembers is
	// as little of an answer as the first was.
	Executed, Stored, Stays bool
}

// FollowUpGateway runs the conformance suite of payments.FollowUpGateway, and of what payments.Gateway does for follow-ups. open is as for Gateway;
// every fault befalls every call once, so that Stripe.Fail must be there if there are any.
func FollowUpGateway(t *testing.T, open func(t *testing.T) Stripe, faults ...Fault) {
	run := func(name string, part func(*stripeBench)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &stripeBench{Stripe: open(t), t: t}
			account, err := b.Gateway.Account(t.Context(), b.TenantID)
			if err != nil {
				t.Fatalf("Account: %v", err)
			}
			b.account = account
			part(b)
		})
	}
	for _, part := range []struct {
		name string
		run  func(*stripeBench)
	}{
		{"Capture", (*stripeBench).capture},
		{"CaptureInPart", (*stripeBench).captureInPart},
		{"CaptureRefused", (*stripeBench).captureRefused},
		{"CancelOnRequest", (*stripeBench).cancelOnRequest},
		{"Refund", (*stripeBench).refund},
		{"RefundAllFields", (*stripeBench).refundAllFields},
		{"RefundPending", (*stripeBench).refundPending},
		{"RefundRefused", (*stripeBench).refundRefused},
		{"RefundsAtOnce", (*stripeBench).refundsAtOnce},
		{"OtherParametersUnderTheSameKey", (*stripeBench).followUpConflict},
		{"HeldBack", (*stripeBench).followUpHeldBack},
		{"EndedBeforeItBegan", (*stripeBench).followUpEndedBefore},
		{"ForeignAccount", (*stripeBench).followUpForeign},
		{"UnknownThere", (*stripeBench).followUpUnknown},
		{"LookEndsWithItsTicket", (*stripeBench).lookRefundsEnds},
	} {
		run(part.name, part.run)
	}
	for _, f := range faults {
		run("Fault/"+f.Name, func(b *stripeBench) { b.followUpFault(f) })
	}
}

// charged is a charge as it stands after its submit, with the name of its PaymentIntent.
func (b *stripeBench) charged(key string, change ...func(*payments.Intent)) payments.Payment {
	b.t.Helper()
	p := b.payment(key, change...)
	p.StripePaymentIntent = b.submit(p, payments.ObservedAnswer).Object.ID
	return p
}

func manual(i *payments.Intent) { i.CaptureMethod = payments.CaptureManual }

// followUp is a follow-up of the charge as its first owner gets it; key sets it apart from others of the charge and kind.
func (b *stripeBench) followUp(kind payments.Kind, charge payments.Payment, key string, amount int64) payments.Payment {
	i := payments.Intent{
		TenantID: b.TenantID, IdempotencyKey: charge.IdempotencyKey + "/" + string(kind) + key, Kind: kind, PaymentID: charge.ID.String(),
		Amount: amount, Currency: charge.Currency,
	}
	return payments.Payment{
		Intent: i, ID: i.ID(), Lane: charge.Lane, Status: payments.StatusReceived, RequestVersion: charge.RequestVersion,
		StripeAccount: charge.StripeAccount, Livemode: charge.Livemode, StripePaymentIntent: charge.StripePaymentIntent,
	}
}

// makes does what the follow-up asks for.
func (b *stripeBench) makes(s payments.Submission) payments.Observation {
	switch s.Payment.Kind {
	case payments.KindCapture:
		return b.FollowUps.Capture(b.t.Context(), s)
	case payments.KindRefund:
		return b.FollowUps.Refund(b.t.Context(), s)
	default:
		return b.Gateway.Cancel(b.t.Context(), s)
	}
}

// follows sends the follow-up once; what is shown must be of the kind.
func (b *stripeBench) follows(p payments.Payment, kind payments.ObservationKind) payments.Observation {
	b.t.Helper()
	asked, before := 0, b.posts()
	s := b.submission(p)
	s.MayLeave = func() error { asked++; return nil }
	o := b.makes(s)
	b.is(o, kind)
	b.leaves(before, 1)
	if asked != 1 {
		b.t.Errorf("MayLeave was asked %d times, want once", asked)
	}
	return o
}

// success is what a follow-up of the kind shows when it was done.
func success(kind payments.Kind) payments.ObservationKind {
	switch kind {
	case payments.KindCapture:
		return payments.ObservedAnswer
	case payments.KindRefund:
		return payments.ObservedRefund
	default:
		return payments.ObservedObject
	}
}

// stands reads the charge's PaymentIntent again and wants it in the status, with so much taken.
func (b *stripeBench) stands(charge payments.Payment, status payments.StripeStatus, received int64) {
	b.t.Helper()
	o := b.Gateway.Retrieve(b.t.Context(), charge)
	b.is(o, payments.ObservedObject)
	b.asked(charge, o.Object, status)
	if o.Object.ID != charge.StripePaymentIntent || o.Object.AmountReceived != received {
		b.t.Errorf("the PaymentIntent is %+v, want %s with %d taken", o.Object, charge.StripePaymentIntent, received)
	}
}

// refunded wants exactly the refund with the id among those of this follow-up; "" wants none.
func (b *stripeBench) refunded(p payments.Payment, id string) payments.Refund {
	b.t.Helper()
	before := b.posts()
	o := b.FollowUps.LookRefunds(b.t.Context(), p, nil)
	b.is(o, payments.ObservedRecords)
	b.leaves(before, 0)
	if id == "" && len(o.Refunds) == 0 {
		return payments.Refund{}
	}
	if len(o.Refunds) != 1 || o.Refunds[0].ID != id {
		b.t.Fatalf("Stripe's refunds show %+v, want %q alone", o.Refunds, id)
	}
	return o.Refunds[0]
}

// gives wants the refund to be the one that the follow-up asked for.
func (b *stripeBench) gives(p payments.Payment, r *payments.Refund, status payments.StripeRefundStatus) {
	b.t.Helper()
	switch {
	case r == nil:
		b.t.Fatal("no refund was observed")
	case r.ID == "" || r.Status != status || r.Amount != p.Amount || r.Currency != p.Currency || r.PaymentIntent != p.StripePaymentIntent || r.Created.IsZero():
		b.t.Errorf("the refund is %+v, want one in status %s for %+v", r, status, p.Intent)
	}
}
