package paymentstest

import "github.com/oncepay/oncepay/payments"

// followUpFault: whatever befalls a capture, a cancel or a refund, it is observed as what it proves, and is done once in the end: a refund is
// looked for before it is asked for again, the others are only asked for again.
func (b *stripeBench) followUpFault(f Fault) {
	followUps, charges := b.ready()
	for i, p := range followUps {
		path := "/v1/payment_intents/" + p.StripePaymentIntent + "/" + string(p.Kind)
		if p.Kind == payments.KindRefund {
			path = "/v1/refunds"
		}
		if err := b.Fail(path, f.Name); err != nil {
			b.t.Fatal(err)
		}
		kind := f.Kind
		if kind == "" {
			kind = success(p.Kind)
		}
		o := b.follows(p, kind)
		if f.Kind != "" && (o.Object != nil || o.Refund != nil) {
			b.t.Errorf("%s: an answer that was none shows %+v, %+v", p.Kind, o.Object, o.Refund)
		}
		if p.Kind == payments.KindRefund {
			b.refundAfter(f, p)
		} else {
			b.intentAfter(f, p)
		}
		switch p.Kind {
		case payments.KindCapture:
			b.stands(charges[i], payments.StripeSucceeded, p.Amount)
		case payments.KindCancel:
			b.stands(charges[i], payments.StripeCanceled, 0)
		}
	}
}

// intentAfter asks for the capture or cancel again, which is safe since Stripe does either once whatever the key.
func (b *stripeBench) intentAfter(f Fault, p payments.Payment) {
	b.t.Helper()
	kind := success(p.Kind)
	switch {
	case f.Stays:
		kind = payments.ObservedUnclear
	case f.Executed && !f.Stored && p.Kind == payments.KindCapture: // it is executed again, and refused for how the PaymentIntent stands
		kind = payments.ObservedInvalid
	}
	o := b.follows(p, kind)
	if want := f.Executed && f.Stored; o.Replayed != want {
		b.t.Errorf("the repeated %s is answered as replayed: %v, want %v", p.Kind, o.Replayed, want)
	}
}

// refundAfter looks for the refund, and asks for it again only where that cannot make another.
func (b *stripeBench) refundAfter(f Fault, p payments.Payment) {
	b.t.Helper()
	look := b.FollowUps.LookRefunds(b.t.Context(), p, nil)
	b.is(look, payments.ObservedRecords)
	want := 0
	if f.Executed {
		want = 1
	}
	if len(look.Refunds) != want {
		b.t.Fatalf("Stripe's refunds show %+v, want %d", look.Refunds, want)
	}
	id := ""
	if want == 1 {
		b.gives(p, &look.Refunds[0], payments.RefundSucceeded)
		id = look.Refunds[0].ID
	}
	switch {
	case f.Stays:
		b.follows(p, payments.ObservedUnclear)
	case f.Stored || !f.Executed:
		again := b.follows(p, payments.ObservedRefund)
		if again.Replayed != f.Executed || id != "" && again.Refund.ID != id {
			b.t.Errorf("the repeat shows %+v (replayed: %v), the records %q", again.Refund, again.Replayed, id)
		}
		id = again.Refund.ID
	}
	b.refunded(p, id)
}
