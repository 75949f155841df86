package paymentstest

import (
	"errors"
	"strings"
	"sync"

	"github.com/oncepay/oncepay/payments"
)

// accounts: the account is one, and stays.
func (b *stripeBench) accounts() {
	again, err := b.Gateway.Account(b.t.Context(), b.TenantID)
	if err != nil || again != b.account || b.account.ID == "" {
		b.t.Errorf("the account is %+v, then %+v, %v", b.account, again, err)
	}
}

func (b *stripeBench) succeeded() {
	p := b.payment("k")
	o := b.settles(p, payments.ObservedAnswer, payments.StatusSucceeded)
	b.asked(p, o.Object, payments.StripeSucceeded)
	if o.Object.AmountReceived != p.Amount || o.Object.LatestCharge == "" || o.HTTPStatus != 200 {
		b.t.Errorf("the answer is %+v, %+v", o, o.Object)
	}
	// Without a customer, on session, in a currency without decimals.
	p = b.payment("other", func(i *payments.Intent) { i.Customer, i.OffSession, i.Currency = "", false, "jpy" })
	o = b.settles(p, payments.ObservedAnswer, payments.StatusSucceeded)
	b.asked(p, o.Object, payments.StripeSucceeded)
}

// allFields: whatever an intent may say is accepted, and the client's metadata are Stripe's.
func (b *stripeBench) allFields() {
	p := b.payment("k", func(i *payments.Intent) {
		i.Description, i.StatementDescriptorSuffix, i.ReceiptEmail = "Two shirts, size “L” & a hat; 日本", "SHIRTS", "jo+shop@example.com"
		i.OffSession, i.ReturnURL = false, "https://shop.example/back?order=1&a[]=b#top"
		i.Metadata = map[string]string{"order": "o 1", "größe": "&=+%", "long": strings.Repeat("é", payments.MetadataValueLengthMax)}
	})
	o := b.settles(p, payments.ObservedAnswer, payments.StatusSucceeded)
	b.asked(p, o.Object, payments.StripeSucceeded)
	found := b.finds(b.inDoubt(p), o.Object.ID)
	for name, value := range p.Metadata {
		if found.Metadata[name] != value {
			b.t.Errorf("Stripe has %q in the metadata %q, want %q", found.Metadata[name], name, value)
		}
	}
}

func (b *stripeBench) manualCapture() {
	p := b.payment("k", func(i *payments.Intent) { i.CaptureMethod = payments.CaptureManual })
	o := b.settles(p, payments.ObservedAnswer, payments.StatusRequiresCapture)
	b.asked(p, o.Object, payments.StripeRequiresCapture)
	if o.Object.AmountReceived != 0 {
		b.t.Errorf("%d were taken, want none", o.Object.AmountReceived)
	}
}

// declined: a decline is a PaymentIntent that was not charged, with the reason in Stripe's words.
func (b *stripeBench) declined() {
	for name, decline := range map[string]string{
		"pm_card_visa_chargeDeclined":                  "generic_decline",
		"pm_card_visa_chargeDeclinedInsufficientFunds": "insufficient_funds",
	} {
		p := b.payment(name, method(name))
		o := b.settles(p, payments.ObservedDecline, payments.StatusFailed)
		b.asked(p, o.Object, payments.StripeRequiresPaymentMethod)
		if o.Failure == nil || o.Failure.Code != "card_declined" || o.Failure.DeclineCode != decline || o.Object.AmountReceived != 0 {
			b.t.Errorf("%s: the failure is %+v, want card_declined, %s", name, o.Failure, decline)
		}
		found := b.finds(b.inDoubt(p), o.Object.ID)
		if t, err := payments.Decide(b.inDoubt(p), payments.Observation{Kind: payments.ObservedRecords, Account: b.account, Found: []payments.PaymentIntent{found}}, b.Now(), payments.Policy{TriesMax: 20}); err != nil || t.Status != payments.StatusFailed {
			b.t.Errorf("%s: Stripe's records are decided as %s, %v", name, t.Status, err)
		}
	}
}

// requiresAction: on session the customer is asked to authenticate.
func (b *stripeBench) requiresAction() {
	p := b.payment("k", method("pm_card_authenticationRequired"), func(i *payments.Intent) { i.OffSession = false })
	o := b.settles(p, payments.ObservedAnswer, payments.StatusRequiresAction)
	b.asked(p, o.Object, payments.StripeRequiresAction)
}

// authenticationRequired: off session there is nobody to ask, so it is a decline that can be mended.
func (b *stripeBench) authenticationRequired() {
	p := b.payment("k", method("pm_card_authenticationRequired"))
	o := b.settles(p, payments.ObservedDecline, payments.StatusRequiresAction)
	if o.Failure == nil {
		b.t.Error("the decline says nothing of why")
	}
}

// invalid: what Stripe refuses to execute leaves nothing behind, and says why.
func (b *stripeBench) invalid() {
	for name, change := range map[string]func(*payments.Intent){
		"method": method("pm_conformance_nobody"),
		"amount": func(i *payments.Intent) { i.Amount = 1 }, // below Stripe's minimum
	} {
		p := b.payment(name, change)
		o := b.settles(p, payments.ObservedInvalid, payments.StatusRejected)
		if o.Failure == nil || o.Failure.Message == "" || o.Object != nil {
			b.t.Errorf("%s: the failure is %+v", name, o.Failure)
		}
		b.finds(b.inDoubt(p), "")
	}
}

// secondCall: the same submission again is answered with the same PaymentIntent, and says so; nothing is charged twice.
func (b *stripeBench) secondCall() {
	p := b.payment("k")
	first := b.settles(p, payments.ObservedAnswer, payments.StatusSucceeded)
	p = b.inDoubt(p)
	second := b.submit(p, payments.ObservedAnswer)
	if !second.Replayed || second.Object.ID != first.Object.ID {
		b.t.Errorf("the second answer is %+v (replayed: %v), the first %+v", second.Object, second.Replayed, first.Object)
	}
	if t, err := payments.Decide(p, second, b.Now(), payments.Policy{TriesMax: 20}); err != nil || t.Status != payments.StatusSucceeded {
		b.t.Errorf("the second answer is decided as %s (%s), %v", t.Status, t.Reason, err)
	}
	b.finds(p, first.Object.ID)
}

func (b *stripeBench) secondCallAfterDecline() {
	p := b.payment("k", method("pm_card_visa_chargeDeclined"))
	first := b.settles(p, payments.ObservedDecline, payments.StatusFailed)
	second := b.submit(p, payments.ObservedDecline)
	if !second.Replayed || second.Object.ID != first.Object.ID {
		b.t.Errorf("the second answer is %+v (replayed: %v), the first %+v", second.Object, second.Replayed, first.Object)
	}
	b.finds(b.inDoubt(p), first.Object.ID)
}

// parameterConflict: another amount under the same key is refused as such, and what was charged first stays as it is.
func (b *stripeBench) parameterConflict() {
	p := b.payment("k")
	first := b.settles(p, payments.ObservedAnswer, payments.StatusSucceeded)
	other := b.inDoubt(p)
	other.Amount++
	o := b.submit(other, payments.ObservedKeyConflict)
	if t, err := payments.Decide(other, o, b.Now(), payments.Policy{TriesMax: 20}); err != nil || t.Status != payments.StatusUnknown {
		b.t.Errorf("a conflict is decided as %s, %v; want unknown", t.Status, err)
	}
	b.asked(p, ptr(b.finds(b.inDoubt(p), first.Object.ID)), payments.StripeSucceeded)
}

func ptr[T any](v T) *T { return &v }

// manyAtOnce: of calls at the same moment one is executed; the others are told of it, or that it is under way.
func (b *stripeBench) manyAtOnce() {
	p := b.inDoubt(b.payment("k"))
	const calls = 5
	answers := make([]payments.Observation, calls)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i] = b.Gateway.Submit(b.t.Context(), b.submission(p)) })
	}
	wg.Wait()
	id := ""
	for _, o := range answers {
		switch {
		case o.Kind == payments.ObservedInUse || o.Kind == payments.ObservedRateLimited || o.Kind == payments.ObservedLocked:
		case o.Kind != payments.ObservedAnswer || o.Object == nil:
			b.t.Errorf("observed %s (%s)", o.Kind, o.Detail)
		case id != "" && o.Object.ID != id:
			b.t.Errorf("two PaymentIntents: %s and %s", id, o.Object.ID)
		default:
			id = o.Object.ID
		}
	}
	b.finds(p, id)
}

// heldBack: what MayLeave refuses does not leave, and the key is as good as new.
func (b *stripeBench) heldBack() {
	p := b.payment("k")
	asked, before := 0, b.posts()
	s := b.submission(p)
	s.MayLeave = func() error { asked++; return errors.New("the lease is over") }
	b.is(b.Gateway.Submit(b.t.Context(), s), payments.ObservedHeldBack)
	b.leaves(before, 0)
	if asked != 1 {
		b.t.Errorf("MayLeave was asked %d times, want once", asked)
	}
	b.finds(b.inDoubt(p), "")
	b.settles(p, payments.ObservedAnswer, payments.StatusSucceeded)
}

// endedBefore: a call whose context has ended already proves nothing that is not so.
func (b *stripeBench) endedBefore() {
	p := b.payment("k")
	before := b.posts()
	b.is(b.Gateway.Submit(b.canceled(), b.submission(p)), payments.ObservedNotSent)
	b.leaves(before, 0)
	b.is(b.Gateway.Look(b.canceled(), b.inDoubt(p), nil), payments.ObservedNoRecords)
	named := p
	named.Status, named.StripePaymentIntent = payments.StatusPending, "pi_conformance"
	b.is(b.Gateway.Retrieve(b.canceled(), named), payments.ObservedNoRecords)
	b.finds(b.inDoubt(p), "")
}

// foreignAccount: for a payment that is pinned to another account, or to the other mode of this one, nothing leaves, and nothing is proved.
func (b *stripeBench) foreignAccount() {
	for name, change := range map[string]func(*payments.Payment){
		"account": func(p *payments.Payment) { p.StripeAccount = "acct_1ConformanceForeign" },
		"mode":    func(p *payments.Payment) { p.Livemode = !p.Livemode },
	} {
		own := b.payment(name)
		p := own
		change(&p)
		before := b.posts()
		o := b.Gateway.Submit(b.t.Context(), b.submission(p))
		if o.Kind != payments.ObservedForeignAccount {
			b.t.Errorf("%s: a submit shows %s, want %s", name, o.Kind, payments.ObservedForeignAccount)
		}
		b.leaves(before, 0)
		if o := b.Gateway.Look(b.t.Context(), b.inDoubt(p), nil); o.Kind != payments.ObservedForeignAccount && o.Kind != payments.ObservedNoRecords {
			b.t.Errorf("%s: a look-up shows %s", name, o.Kind)
		}
		b.finds(b.inDoubt(own), "")
		done := b.settles(own, payments.ObservedAnswer, payments.StatusSucceeded)
		p.Status, p.StripePaymentIntent = payments.StatusPending, done.Object.ID
		if o := b.Gateway.Retrieve(b.t.Context(), p); o.Kind == payments.ObservedObject {
			b.t.Errorf("%s: it was retrieved from our own account: %+v", name, o.Object)
		}
	}
}
