package postgres

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// given are the keys of the tickets that are due.
func (b *bench) given() (keys map[string]payments.Claim) {
	b.t.Helper()
	keys = map[string]payments.Claim{}
	for _, c := range b.take(payments.TakeRequest{Limit: 50}) {
		keys[c.Payment.IdempotencyKey] = c
	}
	return keys
}

// TestCancelHoldsItsChargeBack: a charge that was not sent when its cancel was accepted is given to nobody before that has ended, whatever time passes,
// and shows no time at which it would be tried; and is given again when the cancel ends without it.
func TestCancelHoldsItsChargeBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, end := range map[string]func(b *bench, c payments.Claim){
		"failed": func(b *bench, c payments.Claim) {
			b.recordFollowUp(c, payments.Transition{Status: payments.StatusFailed, Reason: payments.ReasonPaymentEnded}, 0)
		},
		"a person ends it": func(b *bench, c payments.Claim) {
			b.recordFollowUp(c, payments.Transition{Status: payments.StatusWaiting, Reason: payments.ReasonPaymentOpen, ClearSubmit: true}, time.Hour)
			if _, err := b.Resolve(ctx, "acme", c.Payment.ID, payments.Decision{As: payments.StatusCanceled}, ada); err != nil {
				b.t.Fatal(err)
			}
		},
		"stalled and discarded": func(b *bench, c payments.Claim) {
			b.recordFollowUp(c, payments.Transition{
				Status: payments.StatusStalled, Reason: payments.ReasonNotSent, CountTry: true, ClearSubmit: true, DeadLetter: payments.ReasonAttemptsExhausted,
			}, 0)
			b.clock.Advance(24 * time.Hour)
			if got := b.given(); len(got) != 0 {
				b.t.Fatalf("given while it is stalled: %+v", got)
			}
			if done, err := b.Discard(ctx, payments.LetterFilter{}, 0, ann); err != nil || done.Canceled != 1 {
				b.t.Fatalf("%+v, %v", done, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			charge := b.admit(payments.AdmitRequest{Intent: intent("acme", "order", 100), Lane: payments.LaneBulk}).Payment
			b.ask(asking(payments.KindCancel, charge, "cancel", 0), payments.VerdictStored)
			if p, err := b.Find(ctx, "acme", charge.ID); err != nil || p.Status != payments.StatusReceived || !p.NextAttemptAt.IsZero() {
				t.Errorf("%+v", p)
			}
			b.clock.Advance(1000 * time.Hour)
			if got := b.take(payments.TakeRequest{Limit: 50, Lane: payments.LaneBulk}); len(got) != 0 {
				t.Fatalf("given ahead of its cancel: %+v", got)
			}
			end(b, b.takeUp("cancel"))
			if got := b.take(payments.TakeRequest{Limit: 50, Lane: payments.LaneBulk}); len(got) != 1 || got[0].Payment.ID != charge.ID {
				t.Errorf("after the end of its cancel: %+v", got)
			}
		})
	}
}

// TestCancelHoldsBackNobodyElse: not a charge that somebody has, or that was sent, and none whose cancel was not stored.
func TestCancelHoldsBackNobodyElse(t *testing.T) {
	t.Parallel()
	b := open(t)
	owned := b.claim("owned").Payment
	b.ask(asking(payments.KindCancel, owned, "cancel-owned", 0), payments.VerdictStored)
	other := b.admit(payments.AdmitRequest{Intent: intent("acme", "other", 100), Lane: payments.LaneInteractive}).Payment
	b.ask(asking(payments.KindCancel, other, "owned", 0), payments.VerdictConflict) // its key is another's
	if got := b.given(); len(got) != 2 || got["cancel-owned"].Token.IsZero() || got["other"].Token.IsZero() {
		t.Errorf("%+v", got)
	}
	b.clock.Advance(time.Hour) // the owner is gone
	if got := b.given(); got["owned"].Token.IsZero() || !got["owned"].Payment.InDoubt {
		t.Errorf("%+v", got)
	}
}

// TestReplayKeepsAChargeBack: a dead letter that is replayed brings no charge ahead of its cancel.
func TestReplayKeepsAChargeBack(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	c := b.claim("order")
	if err := b.BuryPayment(ctx, c, payments.DeadLetter{Reason: payments.ReasonHandlerPanic, Message: "a bug"}, time.Second); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(time.Hour)
	b.record(b.given()["order"], payments.Transition{Status: payments.StatusWaiting, Reason: payments.ReasonAbsent, ClearSubmit: true, Rounds: 1}, time.Minute)
	charge, err := b.Find(ctx, "acme", c.Payment.ID)
	if err != nil {
		t.Fatal(err)
	}
	b.ask(asking(payments.KindCancel, charge, "cancel", 0), payments.VerdictStored)
	b.clock.Advance(time.Hour)
	b.newReplay(payments.NewReplay{})
	items, err := b.ClaimReplayItems(ctx, 10, time.Minute)
	if err != nil || len(items.Work) != 1 {
		t.Fatalf("%+v, %v", items, err)
	}
	if err := b.IssueReplayed(ctx, items.Work); err != nil {
		t.Fatal(err)
	}
	if got := b.given(); len(got) != 1 || got["cancel"].Token.IsZero() {
		t.Errorf("given: %+v", got)
	}
}

// TestKeptBackForNothing: a ticket that is kept back for a cancel which has ended is named by the query of I2, since nobody would be given it, until it is woken.
// One whose cancel is open stays, and so does one whose cancel has succeeded.
func TestKeptBackForNothing(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	charges := map[string]payments.ID{}
	for _, key := range []string{"ended", "open", "succeeded"} {
		charge := b.admit(payments.AdmitRequest{Intent: intent("acme", key, 100), Lane: payments.LaneBulk}).Payment
		b.ask(asking(payments.KindCancel, charge, "cancel-"+key, 0), payments.VerdictStored)
		charges[key] = charge.ID
	}
	b.check()
	if n, err := b.WakeKeptBack(ctx); n != 0 || err != nil {
		t.Fatalf("while their cancels are open: %d, %v", n, err)
	}
	end := func(key string, status payments.Status) { // as whoever knows nothing of what is kept back
		id := payments.NewID("acme", "cancel-"+key)
		b.exec("UPDATE payments SET status = $2, finalized_at = now() WHERE id = $1", id[:], string(status))
		b.exec("DELETE FROM queue WHERE payment_id = $1", id[:])
	}
	end("ended", payments.StatusFailed)
	end("succeeded", payments.StatusSucceeded)
	kept := func() (ids []payments.ID) {
		list, err := b.TicketViolations(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range list {
			if v.What != "kept back" {
				t.Errorf("%+v", v)
			}
			ids = append(ids, v.ID)
		}
		return ids
	}
	if ids := kept(); len(ids) != 2 || !slices.Contains(ids, charges["ended"]) || !slices.Contains(ids, charges["succeeded"]) {
		t.Errorf("%v", ids)
	}
	if n, err := b.WakeKeptBack(ctx); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if got := b.take(payments.TakeRequest{Limit: 50, Lane: payments.LaneBulk}); len(got) != 1 || got[0].Payment.ID != charges["ended"] {
		t.Errorf("given: %+v", got)
	}
	if ids := kept(); !slices.Equal(ids, []payments.ID{charges["succeeded"]}) {
		t.Errorf("%v", ids)
	}
	gone := charges["succeeded"]
	b.exec("UPDATE queue SET due_at = now() WHERE payment_id = $1", gone[:])
}

// TestWakeKeptBackAndANewCancel: a cancel that is accepted between the finding of a ticket and its lock keeps it.
func TestWakeKeptBackAndANewCancel(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	charge := b.admit(payments.AdmitRequest{Intent: intent("acme", "order", 100), Lane: payments.LaneBulk}).Payment
	b.exec("UPDATE queue SET due_at = $2 WHERE payment_id = $1", charge.ID[:], parkedUntil)
	found, err := b.keptBack(ctx, payments.LaneBulk)
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	b.ask(asking(payments.KindCancel, charge, "cancel", 0), payments.VerdictStored)
	if n, err := b.wakeKeptBack(ctx, found); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if got := b.given(); len(got) != 1 || got["cancel"].Token.IsZero() {
		t.Errorf("given: %+v", got)
	}
	b.check()
}
