package paymentstest

import (
	"errors"
	"sync"

	"github.com/oncepay/oncepay/payments"
)

// capture takes all that is held, once, however often it is asked for.
func (b *stripeBench) capture() {
	charge := b.charged("k", manual)
	p := b.followUp(payments.KindCapture, charge, "", charge.Amount)
	first := b.follows(p, payments.ObservedAnswer)
	b.asked(charge, first.Object, payments.StripeSucceeded)
	if first.Object.ID != charge.StripePaymentIntent || first.Object.AmountReceived != charge.Amount || first.Replayed {
		b.t.Errorf("captured %+v (replayed: %v)", first.Object, first.Replayed)
	}
	again := b.follows(p, payments.ObservedAnswer)
	if !again.Replayed || again.Object.ID != first.Object.ID || again.Object.Status != payments.StripeSucceeded {
		b.t.Errorf("the second answer is %+v (replayed: %v)", again.Object, again.Replayed)
	}
	b.stands(charge, payments.StripeSucceeded, charge.Amount)
}

// captureInPart: what is not captured is released, and can be neither captured nor refunded later.
func (b *stripeBench) captureInPart() {
	charge := b.charged("k", manual)
	o := b.follows(b.followUp(payments.KindCapture, charge, "", 1200), payments.ObservedAnswer)
	b.asked(charge, o.Object, payments.StripeSucceeded)
	if o.Object.AmountReceived != 1200 {
		b.t.Errorf("%d were taken, want 1200", o.Object.AmountReceived)
	}
	b.refusal(b.followUp(payments.KindCapture, charge, "rest", charge.Amount-1200))
	b.refusal(b.followUp(payments.KindRefund, charge, "more", 1201))
	b.stands(charge, payments.StripeSucceeded, 1200)
	p := b.followUp(payments.KindRefund, charge, "", 1200)
	b.gives(p, b.follows(p, payments.ObservedRefund).Refund, payments.RefundSucceeded)
}

// refusal wants Stripe to refuse the follow-up, saying why.
func (b *stripeBench) refusal(p payments.Payment) {
	b.t.Helper()
	o := b.follows(p, payments.ObservedInvalid)
	if o.Failure == nil || o.Failure.Message == "" || o.Refund != nil {
		b.t.Errorf("the refusal is %+v, %+v", o, o.Failure)
	}
}

// captureRefused: more than is held, and what is not held any more, is refused, and nothing is changed by that.
func (b *stripeBench) captureRefused() {
	charge := b.charged("held", manual)
	b.refusal(b.followUp(payments.KindCapture, charge, "", charge.Amount+1))
	b.stands(charge, payments.StripeRequiresCapture, 0)
	b.follows(b.followUp(payments.KindCancel, charge, "", 0), payments.ObservedObject)
	b.refusal(b.followUp(payments.KindCapture, charge, "late", charge.Amount))
	b.stands(charge, payments.StripeCanceled, 0)
	taken := b.charged("taken")
	b.refusal(b.followUp(payments.KindCapture, taken, "", taken.Amount))
	b.stands(taken, payments.StripeSucceeded, taken.Amount)
}

// cancelOnRequest: what is held, or waits for its customer, is released for any of Stripe's reasons or none; what was taken stays.
func (b *stripeBench) cancelOnRequest() {
	for _, reason := range []string{"", "duplicate", "fraudulent", "requested_by_customer", "abandoned"} {
		charge := b.charged("held "+reason, manual)
		p := b.followUp(payments.KindCancel, charge, "", 0)
		p.Intent.Reason = reason
		for range 2 {
			o := b.follows(p, payments.ObservedObject)
			b.asked(charge, o.Object, payments.StripeCanceled)
		}
		b.stands(charge, payments.StripeCanceled, 0)
	}
	asked := b.charged("asked", method("pm_card_authenticationRequired"), func(i *payments.Intent) { i.OffSession = false })
	b.asked(asked, b.follows(b.followUp(payments.KindCancel, asked, "", 0), payments.ObservedObject).Object, payments.StripeCanceled)
	taken := b.charged("taken")
	b.asked(taken, b.follows(b.followUp(payments.KindCancel, taken, "", 0), payments.ObservedObject).Object, payments.StripeSucceeded)
	b.stands(taken, payments.StripeSucceeded, taken.Amount)
}

// refund gives back what it names, once, and is found by its own name among others of the charge.
func (b *stripeBench) refund() {
	charge := b.charged("k")
	neighbour := b.followUp(payments.KindRefund, charge, "neighbour", 100)
	beside := b.follows(neighbour, payments.ObservedRefund).Refund
	p := b.followUp(payments.KindRefund, charge, "", 1500)
	b.refunded(p, "")
	first := b.follows(p, payments.ObservedRefund)
	b.gives(p, first.Refund, payments.RefundSucceeded)
	if first.Replayed || first.Refund.ID == beside.ID {
		b.t.Errorf("the first answer is %+v (replayed: %v)", first.Refund, first.Replayed)
	}
	again := b.follows(p, payments.ObservedRefund)
	if !again.Replayed || again.Refund.ID != first.Refund.ID {
		b.t.Errorf("the second answer is %+v (replayed: %v)", again.Refund, again.Replayed)
	}
	found := b.refunded(p, first.Refund.ID)
	b.gives(p, &found, payments.RefundSucceeded)
	b.refunded(neighbour, beside.ID)
	read := b.FollowUps.RetrieveRefund(b.t.Context(), p, first.Refund.ID)
	b.is(read, payments.ObservedRefund)
	b.gives(p, read.Refund, payments.RefundSucceeded)
	b.stands(charge, payments.StripeSucceeded, charge.Amount)
}

// refundAllFields: whatever a refund may say is accepted, and the client's metadata are Stripe's.
func (b *stripeBench) refundAllFields() {
	charge := b.charged("k")
	for _, reason := range []string{"duplicate", "fraudulent", "requested_by_customer"} {
		p := b.followUp(payments.KindRefund, charge, reason, 300)
		p.Intent.Reason, p.Metadata = reason, map[string]string{"order": "o 1", "größe": "&=+%"}
		o := b.follows(p, payments.ObservedRefund)
		found := b.refunded(p, o.Refund.ID)
		for name, value := range p.Metadata {
			if found.Metadata[name] != value {
				b.t.Errorf("Stripe has %q in the metadata %q, want %q", found.Metadata[name], name, value)
			}
		}
	}
}

// refundPending: one that Stripe is still at work on says so.
func (b *stripeBench) refundPending() {
	charge := b.charged("k", method("pm_card_pendingRefund"))
	p := b.followUp(payments.KindRefund, charge, "", charge.Amount)
	o := b.follows(p, payments.ObservedRefund)
	b.gives(p, o.Refund, payments.RefundPending)
	b.refunded(p, o.Refund.ID)
}

// refundRefused: no more is given back than was taken, and nothing of what is only held.
func (b *stripeBench) refundRefused() {
	charge := b.charged("k")
	for _, p := range []payments.Payment{
		b.followUp(payments.KindRefund, charge, "more", charge.Amount+1),
		b.followUp(payments.KindRefund, b.charged("held", manual), "", 100),
	} {
		b.refusal(p)
		b.refunded(p, "")
	}
	b.follows(b.followUp(payments.KindRefund, charge, "part", 4000), payments.ObservedRefund)
	b.refusal(b.followUp(payments.KindRefund, charge, "too much", 201))
	b.follows(b.followUp(payments.KindRefund, charge, "rest", 200), payments.ObservedRefund)
	p := b.followUp(payments.KindRefund, charge, "late", 1)
	b.refusal(p)
	b.refunded(p, "")
}

// refundsAtOnce: of calls at the same moment one is executed; the others are told of it, or that it is under way.
func (b *stripeBench) refundsAtOnce() {
	p := b.followUp(payments.KindRefund, b.charged("k"), "", 1000)
	answers := make([]payments.Observation, 5)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i] = b.FollowUps.Refund(b.t.Context(), b.submission(p)) })
	}
	wg.Wait()
	id := ""
	for _, o := range answers {
		switch {
		case o.Kind == payments.ObservedInUse || o.Kind == payments.ObservedRateLimited || o.Kind == payments.ObservedLocked:
		case o.Kind != payments.ObservedRefund || o.Refund == nil:
			b.t.Errorf("observed %s (%s)", o.Kind, o.Detail)
		case id != "" && o.Refund.ID != id:
			b.t.Errorf("two refunds: %s and %s", id, o.Refund.ID)
		default:
			id = o.Refund.ID
		}
	}
	b.refunded(p, id)
}

// followUpConflict: another amount under the same key is refused as such, and what was done first stays as it is.
func (b *stripeBench) followUpConflict() {
	held, taken := b.charged("held", manual), b.charged("taken")
	capture := b.followUp(payments.KindCapture, held, "", 1000)
	b.follows(capture, payments.ObservedAnswer)
	refund := b.followUp(payments.KindRefund, taken, "", 1000)
	first := b.follows(refund, payments.ObservedRefund)
	for _, p := range []payments.Payment{capture, refund} {
		p.Amount++
		b.follows(p, payments.ObservedKeyConflict)
	}
	b.stands(held, payments.StripeSucceeded, 1000)
	b.gives(refund, ptr(b.refunded(refund, first.Refund.ID)), payments.RefundSucceeded)
}

// ready are a capture, a cancel and a refund that would be done, with their charges.
func (b *stripeBench) ready() (followUps, charges []payments.Payment) {
	b.t.Helper()
	charges = []payments.Payment{b.charged("capture", manual), b.charged("cancel", manual), b.charged("refund")}
	return []payments.Payment{
		b.followUp(payments.KindCapture, charges[0], "", charges[0].Amount), b.followUp(payments.KindCancel, charges[1], "", 0),
		b.followUp(payments.KindRefund, charges[2], "", 500),
	}, charges
}

// untouched wants that nothing was done of what ready made, and does it then.
func (b *stripeBench) untouched(followUps, charges []payments.Payment) {
	b.t.Helper()
	b.stands(charges[0], payments.StripeRequiresCapture, 0)
	b.stands(charges[1], payments.StripeRequiresCapture, 0)
	b.refunded(followUps[2], "")
	for _, p := range followUps {
		if o := b.follows(p, success(p.Kind)); o.Replayed {
			b.t.Errorf("the first %s that left is answered as a repeated one", p.Kind)
		}
	}
}

// followUpHeldBack: what MayLeave refuses does not leave, and the key is as good as new.
func (b *stripeBench) followUpHeldBack() {
	followUps, charges := b.ready()
	for _, p := range followUps {
		asked, before := 0, b.posts()
		s := b.submission(p)
		s.MayLeave = func() error { asked++; return errors.New("the lease is over") }
		b.is(b.makes(s), payments.ObservedHeldBack)
		for _, name := range []string{"", "pi_", "../account", p.StripePaymentIntent + "/confirm"} {
			odd := b.submission(p)
			odd.Payment.StripePaymentIntent = name
			b.is(b.makes(odd), payments.ObservedHeldBack)
		}
		other := b.submission(p)
		other.StripeKey = payments.StripeKey(b.Namespace, payments.KindCharge, p.TenantID, p.IdempotencyKey)
		b.is(b.makes(other), payments.ObservedHeldBack)
		b.leaves(before, 0)
		if asked != 1 {
			b.t.Errorf("%s: MayLeave was asked %d times, want once", p.Kind, asked)
		}
	}
	b.untouched(followUps, charges)
}

// followUpEndedBefore: a call whose context has ended already proves nothing that is not so.
func (b *stripeBench) followUpEndedBefore() {
	followUps, charges := b.ready()
	before := b.posts()
	b.is(b.FollowUps.Capture(b.canceled(), b.submission(followUps[0])), payments.ObservedNotSent)
	b.is(b.Gateway.Cancel(b.canceled(), b.submission(followUps[1])), payments.ObservedNotSent)
	b.is(b.FollowUps.Refund(b.canceled(), b.submission(followUps[2])), payments.ObservedNotSent)
	b.is(b.FollowUps.LookRefunds(b.canceled(), followUps[2], nil), payments.ObservedNoRecords)
	b.is(b.FollowUps.RetrieveRefund(b.canceled(), followUps[2], "re_conformance"), payments.ObservedNoRecords)
	b.leaves(before, 0)
	b.untouched(followUps, charges)
}

// followUpForeign: for what is pinned to another account or mode nothing leaves, and nothing is proved.
func (b *stripeBench) followUpForeign() {
	followUps, charges := b.ready()
	made := b.follows(b.followUp(payments.KindRefund, charges[2], "made", 100), payments.ObservedRefund).Refund.ID
	for name, change := range map[string]func(*payments.Payment){
		"account": func(p *payments.Payment) { p.StripeAccount = "acct_1ConformanceForeign" },
		"mode":    func(p *payments.Payment) { p.Livemode = !p.Livemode },
	} {
		for _, p := range followUps {
			change(&p)
			before := b.posts()
			if o := b.makes(b.submission(p)); o.Kind != payments.ObservedForeignAccount {
				b.t.Errorf("%s: a %s shows %s, want %s", name, p.Kind, o.Kind, payments.ObservedForeignAccount)
			}
			b.leaves(before, 0)
		}
		p := followUps[2]
		change(&p)
		if o := b.FollowUps.LookRefunds(b.t.Context(), p, nil); o.Kind != payments.ObservedForeignAccount && o.Kind != payments.ObservedNoRecords {
			b.t.Errorf("%s: a look-up shows %s", name, o.Kind)
		}
		if o := b.FollowUps.RetrieveRefund(b.t.Context(), p, made); o.Kind == payments.ObservedRefund {
			b.t.Errorf("%s: it was retrieved from our own account: %+v", name, o.Refund)
		}
	}
	b.untouched(followUps, charges)
}

// followUpUnknown: what Stripe does not have is refused, or observed as absent.
func (b *stripeBench) followUpUnknown() {
	charge := b.charged("k")
	charge.StripePaymentIntent = "pi_1ConformanceNobody"
	b.refusal(b.followUp(payments.KindCapture, charge, "", 100))
	b.refusal(b.followUp(payments.KindRefund, charge, "", 100))
	if o := b.follows(b.followUp(payments.KindCancel, charge, "", 0), payments.ObservedObject); o.Object != nil {
		b.t.Errorf("a PaymentIntent that nobody created is %+v", o.Object)
	}
	p := b.followUp(payments.KindRefund, charge, "", 100)
	o := b.FollowUps.RetrieveRefund(b.t.Context(), p, "re_1ConformanceNobody")
	if b.is(o, payments.ObservedRefund); o.Refund != nil {
		b.t.Errorf("a refund that nobody made is %+v", o.Refund)
	}
	for _, id := range []string{"", "re_", "../account", "re_1/cancel"} {
		b.is(b.FollowUps.RetrieveRefund(b.t.Context(), p, id), payments.ObservedNoRecords)
	}
}

// lookRefundsEnds: progress is asked before every page, and when it says that the ticket is lost nothing is read, and nothing proved.
func (b *stripeBench) lookRefundsEnds() {
	p := b.followUp(payments.KindRefund, b.charged("k"), "", 100)
	id := b.follows(p, payments.ObservedRefund).Refund.ID
	asked := 0
	o := b.FollowUps.LookRefunds(b.t.Context(), p, func() error { asked++; return errors.New("somebody else has the ticket") })
	if b.is(o, payments.ObservedNoRecords); asked != 1 || len(o.Refunds) != 0 {
		b.t.Errorf("progress was asked %d times after it had said no, want once in all; %+v", asked, o.Refunds)
	}
	o = b.FollowUps.LookRefunds(b.t.Context(), p, func() error { asked++; return nil })
	if b.is(o, payments.ObservedRecords); asked < 2 || len(o.Refunds) != 1 || o.Refunds[0].ID != id {
		b.t.Errorf("found %+v, and progress was asked %d times", o.Refunds, asked-1)
	}
}
