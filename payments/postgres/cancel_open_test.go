package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// TestCancelOpen: a cancel that a rewind has in its hands, and any cancel of a charge that was there when a rewind was, may have succeeded before; one of a
// charge that nothing was ever forgotten about cannot, and one that has failed does not.
func TestCancelOpen(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	isOpen := func(what string, p payments.Payment, open, forgotten bool) {
		t.Helper()
		if c, err := b.CancelOpen(ctx, p); err != nil || c != (payments.OpenCancel{Open: open, Forgotten: forgotten}) {
			t.Errorf("%s: %+v, %v; want %t, %t", what, c, err, open, forgotten)
		}
	}
	before := b.admit(payments.AdmitRequest{Intent: intent("acme", "before", 9900), Lane: payments.LaneBulk}).Payment
	none := b.admit(payments.AdmitRequest{Intent: intent("acme", "none", 9900), Lane: payments.LaneBulk}).Payment
	later := b.admit(payments.AdmitRequest{Intent: intent("acme", "later", 9900), Lane: payments.LaneBulk}).Payment
	b.ask(asking(payments.KindCancel, before, "cancel-before", 0), payments.VerdictStored)
	isOpen("before any rewind", before, true, false)
	owned := b.claim("owned").Payment
	b.ask(asking(payments.KindCancel, owned, "cancel-owned", 0), payments.VerdictStored)
	b.takeUp("cancel-owned")
	isOpen("a worker has it", owned, true, false)
	r := b.all(b.beginRewind(b.clock.Now()), b.DoubtTickets)
	isOpen("in doubt", before, true, true)
	isOpen("without a cancel", none, false, false)
	if _, err := b.FinishRewind(ctx, r, payments.RewindCompleted, 1); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(time.Minute)
	b.ask(asking(payments.KindCancel, later, "cancel-later", 0), payments.VerdictStored)
	isOpen("asked for after the rewind", later, true, true)
	c := b.takeUp("cancel-later")
	b.recordFollowUp(c, payments.Transition{Status: payments.StatusFailed, Reason: payments.ReasonPaid}, 0)
	isOpen("failed", later, false, false)
	b.clock.Advance(time.Minute)
	soon := b.admit(payments.AdmitRequest{Intent: intent("acme", "soon", 9900), Lane: payments.LaneBulk}).Payment
	b.ask(asking(payments.KindCancel, soon, "cancel-soon", 0), payments.VerdictStored)
	isOpen("a charge that a clock ahead may have put after the rewind", soon, true, true)
	b.clock.Advance(payments.ClockMargin)
	after := b.admit(payments.AdmitRequest{Intent: intent("acme", "after", 9900), Lane: payments.LaneBulk}).Payment
	b.ask(asking(payments.KindCancel, after, "cancel-after", 0), payments.VerdictStored)
	isOpen("a charge that came after the rewind", after, true, false)
}

// TestRestoredCancels: whatever order a charge and its cancel come back in, and wherever the backup has the charge, the charge is in doubt from then on, so that it is
// looked up, which finds the cancel.
func TestRestoredCancels(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		charge func(b *bench, i payments.Intent) // what the restored database knows
		listed bool                              // its message is read again, before the cancel's
		again  bool                              // and its sender has asked for the cancel again in the meantime
	}{
		"not sent yet":              {charge: func(b *bench, i payments.Intent) { b.admit(payments.AdmitRequest{Intent: i, Lane: payments.LaneBulk}) }},
		"not sent yet, asked again": {charge: func(b *bench, i payments.Intent) { b.admit(payments.AdmitRequest{Intent: i, Lane: payments.LaneBulk}) }, again: true},
		"forgotten":                 {charge: func(*bench, payments.Intent) {}, listed: true},
		"given up": {charge: func(b *bench, i payments.Intent) {
			c := b.admit(b.claiming(i)).Claim
			b.record(c, payments.Transition{Status: payments.StatusStalled, Reason: payments.ReasonNotSent, ClearSubmit: true, DeadLetter: payments.ReasonAttemptsExhausted}, 0)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			ctx := context.Background()
			charge := intent("acme", "k", 9900)
			c.charge(b, charge)
			request := asking(payments.KindCancel, payments.Payment{Intent: charge, ID: charge.ID()}, "cancel", 0)
			if c.again {
				b.ask(request, payments.VerdictStored)
			}
			r := b.beginRewind(b.clock.Now()) // and its steps have passed them by
			var list []payments.ForgottenPayment
			if c.listed {
				list = append(list, payments.ForgottenPayment{Intent: charge, Lane: payments.LaneBulk, StoredAt: b.clock.Now()})
			}
			list = append(list, payments.ForgottenPayment{Intent: request.Intent, Lane: payments.LaneInteractive, StoredAt: b.clock.Now()})
			for range 2 { // each step may be repeated
				var done payments.Restored
				var err error
				if r, done, err = b.RestorePayments(ctx, r, time.Minute, list, func(string) payments.Account { return account }); err != nil || len(done.Refused) > 0 {
					t.Fatalf("%+v, %v", done, err)
				}
			}
			p, err := b.Find(ctx, "acme", charge.ID())
			if err != nil || !p.InDoubt || p.FirstSubmitAt.IsZero() {
				t.Errorf("%+v, %v", p, err)
			}
			if f, err := b.FindFollowUp(ctx, "acme", request.Intent.ID()); err != nil || f.Status != payments.StatusUnknown || !f.InDoubt {
				t.Errorf("%+v, %v", f, err)
			}
			if c, err := b.CancelOpen(ctx, p); err != nil || !c.Open || !c.Forgotten {
				t.Errorf("the cancel is open: %+v, %v", c, err)
			}
		})
	}
}
