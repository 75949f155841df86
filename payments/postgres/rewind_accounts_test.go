package postgres

import (
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// TestOnSeveralAccounts: a payment whose PaymentIntents a rewind finds on two accounts is a person's, whenever it comes: a look-up on either would show half
// of the truth. One that has ended stays, and is counted.
func TestOnSeveralAccounts(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := t.Context()
	twice := func(id payments.ID) []payments.StripeObject {
		here, there := object("acme", id), object("acme", id)
		there.Account, there.Intent.ID = payments.Account{ID: "acct_other"}, there.Intent.ID+"b"
		return []payments.StripeObject{here, there}
	}
	owned, ended, held := b.claim("owned"), b.claim("ended"), b.claim("held")
	b.record(ended, succeeded(ended.Payment), 0)
	b.record(held, payments.Transition{Status: payments.StatusRequiresCapture, Object: &payments.PaymentIntent{ID: "pi_held"}}, 0)
	gone, early, late := intent("acme", "gone", 9900), intent("acme", "early", 9900), intent("acme", "late", 9900)
	var objects []payments.StripeObject
	for _, id := range []payments.ID{owned.Payment.ID, ended.Payment.ID, held.Payment.ID, gone.ID(), early.ID(), late.ID()} {
		objects = append(objects, twice(id)...)
	}
	r := b.beginRewind(b.clock.Now())
	r, _, err := b.StoreObjects(ctx, r, time.Minute, objects)
	if err != nil {
		t.Fatal(err)
	}
	r = b.all(r, b.DoubtTickets)
	r = b.all(r, b.DoubtOthers)
	list := []payments.ForgottenPayment{{Intent: gone, Lane: payments.LaneBulk, StoredAt: b.clock.Now()}}
	if r, _, err = b.RestorePayments(ctx, r, time.Minute, list, func(string) payments.Account { return account }); err != nil {
		t.Fatal(err)
	}
	if a := b.admit(b.claiming(early)); a.Verdict != payments.VerdictStored {
		t.Errorf("admitted as %s", a.Verdict)
	}
	r = b.all(r, b.DoubtFound)
	for _, id := range []payments.ID{owned.Payment.ID, held.Payment.ID, gone.ID(), early.ID()} {
		p, err := b.Find(ctx, "acme", id)
		if err != nil || p.Status != payments.StatusNeedsReview || p.Reason != payments.ReasonSeveral || !p.InDoubt {
			t.Errorf("%s: %s %s, %v", p.IdempotencyKey, p.Status, p.Reason, err)
		}
	}
	if p := b.find(ended); p.Status != payments.StatusSucceeded || r.Progress.Disagrees != 1 {
		t.Errorf("%+v, %+v", p, r.Progress)
	}
	if taken := b.take(payments.TakeRequest{Limit: 10}); len(taken) != 0 {
		t.Errorf("taken: %+v", taken)
	}

	// One that comes when the rewind is over has no account: whoever takes it can look nowhere, and leaves it to a person.
	if a := b.admit(b.claiming(late)); a.Verdict != payments.VerdictStored {
		t.Errorf("admitted as %s", a.Verdict)
	}
	taken := b.take(payments.TakeRequest{Limit: 10})
	if len(taken) != 1 || taken[0].Payment.Status != payments.StatusUnknown || !taken[0].Payment.InDoubt || taken[0].Payment.StripeAccount != "" || payments.Next(taken[0].Payment, b.clock.Now()) != payments.ActionLook {
		t.Fatalf("%+v", taken)
	}
	next, err := payments.Decide(taken[0].Payment, payments.Observation{Kind: payments.ObservedNoRecords, Account: account}, b.clock.Now(), payments.Policy{TriesMax: 20})
	if err != nil || next.Status != payments.StatusNeedsReview || next.Reason != payments.ReasonAccountUnclear || !next.InDoubt {
		t.Errorf("%+v, %v", next, err)
	}
}
