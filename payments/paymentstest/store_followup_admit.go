package paymentstest

import (
	"slices"
	"strings"

	"github.com/oncepay/oncepay/payments"
)

// followUpStores: a refund has, from its first commit on, the amount that it is accepted with and what its charge is bound to; its ticket is due at
// once, and it is published as it was asked for.
func (b *storeBench) followUpStores() {
	charge := b.taken("k")
	b.sent()
	r := asking(payments.KindRefund, charge, "r", 0)
	r.Announce, r.Intent.Reason, r.Intent.Metadata = true, "duplicate", map[string]string{"größe": "<1>"}
	a := b.ask(r, payments.VerdictStored)
	found := b.followUp(a.FollowUp.Payment)
	for name, f := range map[string]payments.FollowUp{"answered": a.FollowUp, "stored": found} {
		p := f.Payment
		switch {
		case p.Kind != payments.KindRefund, p.Amount != 9900, p.Currency != "usd", p.StripePaymentIntent != charge.StripePaymentIntent,
			p.StripeAccount != stripeAccount.ID, !p.Livemode, p.ID != r.Intent.ID(), p.Intent.Reason != "duplicate", !p.All, p.PaymentID != charge.ID.String():
			b.t.Errorf("%s: %+v", name, f)
		case p.Status != payments.StatusReceived, p.Owned, p.InDoubt, !p.FirstSubmitAt.IsZero(), !p.NextAttemptAt.Equal(b.Now()), !p.CreatedAt.Equal(b.Now()),
			p.AmountCaptured != 0, p.Sequence != 0, p.RequestVersion <= 0, p.Reason != "":
			b.t.Errorf("%s: %+v", name, f)
		case f.Number != 1, f.StripeRefund != "":
			b.t.Errorf("%s: %+v", name, f)
		}
		sameIntent(b, p.Intent, r.Intent)
	}
	b.toldOf()
	b.announced(payments.LaneInteractive, r.Intent)
	b.unchanged(charge)
	c := b.takeOne()
	if c.Payment.ID != found.ID || c.Payment.InDoubt || c.Payment.StripeAccount != stripeAccount.ID {
		b.t.Errorf("the claim: %+v", c)
	}
	if p := b.stored(c.Payment); !p.InDoubt || !p.FirstSubmitAt.Equal(b.Now()) || !p.Owned {
		b.t.Errorf("stored once it is taken: %+v", p)
	}
	again := b.ask(r, payments.VerdictExists)
	if !again.FollowUp.Owned || again.FollowUp.Number != 1 || again.FollowUp.ID != found.ID {
		b.t.Errorf("a repeat shows %+v", again.FollowUp)
	}
	b.announced(payments.LaneInteractive)
}

// followUpConflict: one key names one request, whatever its kind, and whichever charge it is about.
func (b *storeBench) followUpConflict() {
	charge, other := b.taken("k"), b.taken("other")
	r := asking(payments.KindRefund, charge, "r", 100)
	first := b.ask(r, payments.VerdictStored).FollowUp
	for field, change := range map[string]func(*payments.FollowUpRequest){
		"amount":     func(r *payments.FollowUpRequest) { r.Intent.Amount = 200 },
		"kind":       func(r *payments.FollowUpRequest) { r.Intent.Kind = payments.KindCapture },
		"payment_id": func(r *payments.FollowUpRequest) { r.Intent.PaymentID = other.ID.String() },
		"reason":     func(r *payments.FollowUpRequest) { r.Intent.Reason = "fraudulent" },
		"metadata":   func(r *payments.FollowUpRequest) { r.Intent.Metadata = map[string]string{"a": "b"} },
	} {
		asked := r
		change(&asked)
		a := b.ask(asked, payments.VerdictConflict)
		if !slices.Equal(a.Differs, []string{field}) || a.FollowUp.ID != first.ID || a.FollowUp.Amount != 100 {
			b.t.Errorf("%s: differs in %v from %+v", field, a.Differs, a.FollowUp)
		}
	}
	all := r
	all.Intent.Amount, all.Intent.All = 0, true
	b.ask(all, payments.VerdictConflict)
	// A charge's key is taken, and a follow-up's is taken for charges.
	if a := b.ask(asking(payments.KindRefund, charge, "k", 100), payments.VerdictConflict); !slices.Contains(a.Differs, "kind") || a.FollowUp.ID != charge.ID {
		b.t.Errorf("under a charge's key: %+v", a)
	}
	if a := b.admit(b.claiming(b.intent("r")), payments.VerdictConflict); !slices.Contains(a.Differs, "kind") {
		b.t.Errorf("a charge under a refund's key: %+v", a)
	}
	b.unchanged(first.Payment)
	if list, err := b.FollowUps.FollowUpsOf(b.ctx, charge.TenantID, charge.ID, ""); err != nil || len(list) != 1 {
		b.t.Errorf("the follow-ups: %+v, %v", list, err)
	}
}

// followUpRefused: what is not allowed stores nothing, and its key stays free; the key that is taken outranks whatever is wrong else.
func (b *storeBench) followUpRefused() {
	charge, nobody := b.taken("k"), payments.Payment{Intent: payments.Intent{TenantID: b.Tenants[0]}, ID: payments.NewID(b.Tenants[0], "none")}
	stranger := charge
	stranger.TenantID = b.Tenants[1]
	b.ask(asking(payments.KindRefund, nobody, "r", 100), payments.VerdictPaymentUnknown)
	b.ask(asking(payments.KindRefund, stranger, "r", 100), payments.VerdictPaymentUnknown)
	stranger.TenantID = "conformance-nobody"
	b.ask(asking(payments.KindRefund, stranger, "r", 100), payments.VerdictTenantUnknown)
	b.ask(asking(payments.KindCapture, charge, "r", 100), payments.VerdictInvalidState)
	b.ask(asking(payments.KindCancel, charge, "r", 0), payments.VerdictInvalidState)
	b.ask(asking(payments.KindRefund, charge, "r", 9901), payments.VerdictAmountExceeds)
	wrong := &payments.ValidationError{Reason: payments.ReasonInvalid, Fields: []payments.FieldError{{Field: "amount", Message: "must be positive"}}}
	r := asking(payments.KindRefund, charge, "r", -1)
	r.Refused = wrong
	b.ask(r, payments.VerdictRefused)
	r = asking(payments.KindRefund, charge, "r", 100)
	r.ExistingOnly = true
	b.ask(r, payments.VerdictAbsent)
	first := b.ask(asking(payments.KindRefund, charge, "r", 9000), payments.VerdictStored).FollowUp
	b.ask(asking(payments.KindRefund, first.Payment, "of_a_refund", 1), payments.VerdictPaymentUnknown)
	b.ask(asking(payments.KindRefund, charge, "more", 901), payments.VerdictAmountExceeds)
	// The same key, whatever may be said against it by now.
	b.ask(asking(payments.KindRefund, charge, "r", 9000), payments.VerdictExists)
	b.ask(asking(payments.KindRefund, charge, "r", 9001), payments.VerdictConflict)
	r = asking(payments.KindRefund, charge, "r", -1)
	r.Refused = wrong
	b.ask(r, payments.VerdictConflict)
	r = asking(payments.KindRefund, charge, "r", 9000)
	r.Refused = wrong
	b.ask(r, payments.VerdictRefused)
	r.Refused, r.ExistingOnly = nil, true
	b.ask(r, payments.VerdictExists)
	b.unchanged(first.Payment)
	b.announced(payments.LaneInteractive)
}

// followUpSuspect: a message that was suspected to end its workers is none any more once it was admitted, whatever the verdict.
func (b *storeBench) followUpSuspect() {
	charge := b.taken("k")
	d := b.message(1)
	for _, r := range []payments.FollowUpRequest{
		asking(payments.KindRefund, charge, "r", 100), asking(payments.KindRefund, charge, "r", 100), asking(payments.KindCapture, charge, "c", 0),
	} {
		if got, err := b.Store.Suspect(b.ctx, d); err != nil || got != 1 {
			b.t.Errorf("%d starts, %v; want 1", got, err)
		}
		r.Suspect = &d.Origin
		if _, err := b.FollowUps.AdmitFollowUp(b.ctx, r); err != nil {
			b.t.Fatal(err)
		}
	}
	if got, err := b.Store.Suspect(b.ctx, d); err != nil || got != 1 {
		b.t.Errorf("%d starts in the end, %v; want 1", got, err)
	}
}

// followUpsAreRead: by their charge in the order in which they were accepted, by kind, and each by its id; never for somebody else, and never as payments.
func (b *storeBench) followUpsAreRead() {
	charge := b.held("k")
	capture := b.ask(asking(payments.KindCapture, charge, "z", 5000), payments.VerdictStored).FollowUp
	var keys []string
	for _, key := range []string{"r3", "r1", "r2"} {
		b.ask(asking(payments.KindRefund, charge, key, 1000), payments.VerdictStored)
		keys = append(keys, key)
	}
	list, err := b.FollowUps.FollowUpsOf(b.ctx, charge.TenantID, charge.ID, payments.KindRefund)
	if err != nil || len(list) != 3 {
		b.t.Fatalf("the refunds: %+v, %v", list, err)
	}
	for i, f := range list {
		if f.IdempotencyKey != keys[i] || f.Number != int64(i)+2 || f.Amount != 1000 {
			b.t.Errorf("refund %d: %+v, want %s", i, f, keys[i])
		}
	}
	if list, err = b.FollowUps.FollowUpsOf(b.ctx, charge.TenantID, charge.ID, ""); err != nil || len(list) != 4 || list[0].ID != capture.ID || list[0].Number != 1 {
		b.t.Errorf("all: %+v, %v", list, err)
	}
	if list, err = b.FollowUps.FollowUpsOf(b.ctx, charge.TenantID, charge.ID, payments.KindCancel); err != nil || len(list) != 0 {
		b.t.Errorf("the cancels: %+v, %v", list, err)
	}
	for what, err := range map[string]error{
		"a charge":                second(b.FollowUps.FindFollowUp(b.ctx, charge.TenantID, charge.ID)),
		"nobody's":                second(b.FollowUps.FindFollowUp(b.ctx, charge.TenantID, payments.NewID(charge.TenantID, "none"))),
		"another tenant's":        second(b.FollowUps.FindFollowUp(b.ctx, b.Tenants[1], capture.ID)),
		"of another tenant's":     second(b.FollowUps.FollowUpsOf(b.ctx, b.Tenants[1], charge.ID, "")),
		"of a follow-up":          second(b.FollowUps.FollowUpsOf(b.ctx, charge.TenantID, capture.ID, "")),
		"the state of a charge":   second(b.FollowUps.FollowUpState(b.ctx, charge)),
		"the state of no payment": second(b.FollowUps.FollowUpState(b.ctx, payments.Payment{Intent: payments.Intent{TenantID: b.Tenants[0]}})),
	} {
		if payments.ErrorCode(err) != payments.CodeNotFound {
			b.t.Errorf("%s: %v, want %s", what, err, payments.CodeNotFound)
		}
	}
	page, _, err := b.Reader.List(b.ctx, payments.ListRequest{TenantID: charge.TenantID})
	if err != nil || len(page) != 1 || page[0].ID != charge.ID {
		b.t.Errorf("the list of payments: %+v, %v", page, err)
	}
	if page, _, err = b.Reader.List(b.ctx, payments.ListRequest{TenantID: charge.TenantID, IdempotencyKey: "r1"}); err != nil || len(page) != 0 {
		b.t.Errorf("the payment of a refund's key: %+v, %v", page, err)
	}
	entries, err := b.Reader.Timeline(b.ctx, charge.TenantID, capture.ID)
	if err != nil || len(entries) != 1 || !strings.HasPrefix(entries[0].Type, "oncepay.capture.") || entries[0].Status != payments.StatusReceived {
		b.t.Errorf("the timeline: %+v, %v", entries, err)
	}
}

func second[T any](_ T, err error) error { return err }
