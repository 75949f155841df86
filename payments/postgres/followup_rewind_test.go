package postgres

import (
	"slices"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// refundObject is what Stripe has of a refund.
func (b *bench) refundObject(id payments.ID) payments.StripeObject {
	o := object("acme", id)
	o.Intent.ID, o.Intent.Created = "re_"+id.Hex()[:24], b.clock.Now().Add(-time.Minute)
	return o
}

// TestRefundThatStripeKnowsBeginsInDoubt: once a rewind has found a refund at Stripe, it is looked up however it comes, and no PaymentIntent becomes
// another payment's by it. While the rewind is running, nobody knows what is left of a payment, and none is accepted.
func TestRefundThatStripeKnowsBeginsInDoubt(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := t.Context()
	charge := b.taken("k")
	known, other := asking(payments.KindRefund, charge, "known", 1000), asking(payments.KindRefund, charge, "other", 1000)
	there := b.ask(asking(payments.KindRefund, charge, "there", 1000), payments.VerdictStored).FollowUp
	r := b.beginRewind(b.clock.Now())
	r, _, err := b.StoreObjects(ctx, r, time.Minute, []payments.StripeObject{b.refundObject(known.Intent.ID())})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := b.AdmitFollowUp(ctx, known); !payments.Retryable(err) {
		t.Errorf("while the rewind is running: %+v, %v", a, err)
	}
	if f := b.ask(asking(payments.KindRefund, charge, "there", 1000), payments.VerdictExists).FollowUp; f.ID != there.ID {
		t.Errorf("what is there: %+v", f)
	}
	if _, err := b.FinishRewind(ctx, r, payments.RewindCompleted, 1); err != nil {
		t.Fatal(err)
	}
	if f := b.ask(known, payments.VerdictStored).FollowUp; f.Status != payments.StatusUnknown || !f.InDoubt || !f.FirstSubmitAt.Equal(b.clock.Now().Add(-time.Minute)) || f.StripeAccount != account.ID {
		t.Errorf("known: %+v", f)
	}
	if f := b.ask(other, payments.VerdictStored).FollowUp; f.Status != payments.StatusReceived || f.InDoubt {
		t.Errorf("other: %+v", f)
	}
	if c := b.takeUp("known"); !c.Payment.InDoubt || c.Payment.Status != payments.StatusUnknown {
		t.Errorf("%+v", c.Payment)
	}
}

// TestFollowUpsAreDoubted: a rewind puts in doubt whoever is to be worked on, and a late owner writes nothing, to its charge either.
func TestFollowUpsAreDoubted(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := t.Context()
	charge := b.taken("k")
	b.ask(asking(payments.KindRefund, charge, "owned", 1000), payments.VerdictStored)
	owned := b.takeUp("owned")
	pending := b.ask(asking(payments.KindRefund, charge, "pending", 1000), payments.VerdictStored).FollowUp
	c := b.takeUp("pending")
	b.recordFollowUp(c, payments.Transition{Status: payments.StatusPending, Refund: refunded(c.Payment).Refund}, time.Hour)
	r := b.all(b.beginRewind(b.clock.Now()), b.DoubtTickets)
	if p := b.find(owned); p.Status != payments.StatusUnknown || !p.InDoubt || p.Reason != payments.ReasonRewound || p.Owned || r.Progress.Doubted != 1 {
		t.Errorf("owned: %+v, %+v", p, r.Progress)
	}
	if f, err := b.FindFollowUp(ctx, "acme", pending.ID); err != nil || f.Status != payments.StatusPending || f.StripeRefund == "" {
		t.Errorf("pending: %+v, %v", f, err)
	}
	_, err := b.RecordFollowUp(ctx, payments.Recording{Claim: owned, Transition: refunded(owned.Payment), At: b.clock.Now()})
	lost(t, err)
	if p, err := b.Find(ctx, "acme", charge.ID); err != nil || p.AmountRefunded != 0 {
		t.Errorf("the charge: %+v, %v", p, err)
	}
}

// TestRestoredFollowUps: what the database has forgotten is stored again, in doubt, as far as its charge is there and allows it; else somebody is told why.
func TestRestoredFollowUps(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := t.Context()
	charge, there := b.taken("k"), b.claim("there")
	b.record(there, succeeded(there.Payment), 0)
	b.ask(asking(payments.KindRefund, there.Payment, "settled", 1000), payments.VerdictStored)
	settled := b.takeUp("settled")
	b.recordFollowUp(settled, refunded(settled.Payment), 0)
	b.clock.Advance(time.Hour)
	since := b.clock.Now().Add(-time.Minute)
	r := b.beginRewind(since)
	gone := payments.Payment{Intent: intent("acme", "gone", 9900), ID: payments.NewID("acme", "gone")}
	never := payments.Payment{Intent: intent("acme", "never", 9900), ID: payments.NewID("acme", "never")}
	nobody := payments.Payment{Intent: payments.Intent{TenantID: "nobody"}, ID: gone.ID}
	message := func(r payments.FollowUpRequest) payments.ForgottenPayment {
		return payments.ForgottenPayment{Intent: r.Intent, Lane: payments.LaneInteractive, StoredAt: since}
	}
	list := []payments.ForgottenPayment{
		message(asking(payments.KindRefund, charge, "r", 0)),
		message(asking(payments.KindRefund, charge, "r", 1)),
		message(asking(payments.KindRefund, charge, "more", 1)),
		message(asking(payments.KindRefund, gone, "of_what_is_gone", 1)),
		{Intent: gone.Intent, Lane: payments.LaneInteractive, StoredAt: since},
		message(asking(payments.KindRefund, nobody, "x", 1)),
		message(asking(payments.KindRefund, there.Payment, "settled", 1000)),
		message(asking(payments.KindRefund, never, "of_what_never_was", 1)),
	}
	for round := range 2 {
		next, done, err := b.RestorePayments(ctx, r, time.Minute, list, func(string) payments.Account { return account })
		if err != nil {
			t.Fatal(err)
		}
		r = next
		if done.Stored != 4*(1-round) || len(done.Conflicts) != 1 || !slices.Equal(done.Conflicts[1], []string{"amount"}) || len(done.Unknown) != 1 || done.Unknown[5] != "nobody" ||
			len(done.Refused) != 1 || done.Refused[7] == "" {
			t.Errorf("round %d: %+v", round, done)
		}
	}
	f, err := b.FindFollowUp(ctx, "acme", list[0].Intent.ID())
	if err != nil || f.Status != payments.StatusUnknown || !f.InDoubt || f.Payment.Reason != payments.ReasonRewound || f.Amount != 9900 || f.FirstSubmitAt.After(since) || f.LastSubmitAt.Before(r.CreatedAt) {
		t.Errorf("stored again: %+v, %v", f, err)
	}
	// The figures leave no room for this one: it is looked for, and too late to be sent.
	more, err := b.FindFollowUp(ctx, "acme", list[2].Intent.ID())
	if err != nil || more.Status != payments.StatusUnknown || !more.InDoubt || more.Amount != 1 || more.LastSubmitAt.Before(r.CreatedAt) || payments.MaySend(more.Payment, more.FirstSubmitAt, b.clock.Now()) {
		t.Errorf("no room for it: %+v, %v", more, err)
	}
	// Its charge is forgotten, too, and still to be looked up: that does not refuse what was accepted before.
	of, err := b.FindFollowUp(ctx, "acme", list[3].Intent.ID())
	if err != nil || of.Status != payments.StatusUnknown || !of.InDoubt || of.Amount != 1 || of.StripePaymentIntent != "" {
		t.Errorf("of a charge that was restored: %+v, %v", of, err)
	}
	if p := b.find(settled); p.Status != payments.StatusSucceeded || p.InDoubt {
		t.Errorf("what had ended: %+v", p)
	}
	if r.Progress.Restored != 4 {
		t.Errorf("%+v", r.Progress)
	}
}
