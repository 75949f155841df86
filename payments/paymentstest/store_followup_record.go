package paymentstest

import (
	"time"

	"github.com/oncepay/oncepay/payments"
)

// refundRecords: a refund that was made is the end of its row, and its charge shows what was given back and nothing else. Stripe's name of it stays known.
func (b *storeBench) refundRecords() {
	charge := b.taken("k")
	b.ask(asking(payments.KindRefund, charge, "r", 3000), payments.VerdictStored)
	b.sent()
	c := b.takeOne()
	if state := b.state(c); state.Target.ID != charge.ID || state.Target.AmountCaptured != 9900 || state.Ahead || state.StripeRefund != "" {
		b.t.Errorf("the state: %+v", state)
	}
	b.Advance(time.Second)
	done := b.recordFollowUp(c, refunding(c.Payment), time.Minute)
	if p := b.stored(c.Payment); done.Sequence != 1 || p.Status != payments.StatusPending || p.InDoubt || p.Owned || !p.NextAttemptAt.Equal(b.Now().Add(time.Minute)) || p.StripePaymentIntent != charge.StripePaymentIntent {
		b.t.Errorf("recorded %+v, stored %+v", done, p)
	}
	b.unchanged(charge)
	if f := b.followUp(c.Payment); f.StripeRefund != refundOf(c.Payment, "").ID {
		b.t.Errorf("on its way: %+v", f)
	}
	b.Advance(time.Minute)
	c = b.takeOne()
	if state := b.state(c); state.StripeRefund != refundOf(c.Payment, "").ID {
		b.t.Errorf("the state once it is on its way: %+v", state)
	}
	t := refunded(c.Payment)
	t.Refund = nil
	done = b.recordFollowUp(c, t, 0)
	f := b.followUp(c.Payment)
	if done.Sequence != 2 || f.Status != payments.StatusSucceeded || !f.FinalizedAt.Equal(b.Now()) || !f.NextAttemptAt.IsZero() || f.StripeRefund == "" {
		b.t.Errorf("recorded %+v, stored %+v", done, f)
	}
	after := b.stored(charge)
	if after.AmountRefunded != 3000 || after.AmountCaptured != 9900 || after.Status != charge.Status || after.Sequence != charge.Sequence || after.Owned || !after.FinalizedAt.Equal(charge.FinalizedAt) {
		b.t.Errorf("the charge: %+v", after)
	}
	b.toldOf("oncepay.refund.pending", "oncepay.refund.succeeded")
	b.ask(asking(payments.KindRefund, charge, "more", 6901), payments.VerdictAmountExceeds)
	if a := b.ask(asking(payments.KindRefund, charge, "rest", 0), payments.VerdictStored); a.FollowUp.Amount != 6900 || a.FollowUp.Number != 2 {
		b.t.Errorf("the rest: %+v", a.FollowUp)
	}
}

// refundFails: what was not given back can be refunded again.
func (b *storeBench) refundFails() {
	charge := b.taken("k")
	b.ask(asking(payments.KindRefund, charge, "r", 0), payments.VerdictStored)
	b.ask(asking(payments.KindRefund, charge, "again", 0), payments.VerdictAmountExceeds)
	c := b.takeOne()
	b.recordFollowUp(c, payments.Transition{Status: payments.StatusFailed, Reason: "insufficient_funds", Refund: refundOf(c.Payment, payments.RefundFailed)}, 0)
	if p := b.stored(charge); p.AmountRefunded != 0 {
		b.t.Errorf("the charge: %+v", p)
	}
	if a := b.ask(asking(payments.KindRefund, charge, "again", 0), payments.VerdictStored); a.FollowUp.Amount != 9900 {
		b.t.Errorf("again: %+v", a.FollowUp)
	}
}

// captureRecords: a capture ends together with its charge, whose event is a charge's.
func (b *storeBench) captureRecords() {
	charge := b.held("k")
	b.ask(asking(payments.KindCapture, charge, "c", 5000), payments.VerdictStored)
	refund := b.ask(asking(payments.KindRefund, charge, "r", 0), payments.VerdictStored).FollowUp
	if refund.Amount != 5000 {
		b.t.Errorf("the refund of what will be taken: %+v", refund)
	}
	b.sent()
	c := b.takeUp("c")
	done := b.recordFollowUp(c, captured(c.Payment), 0)
	p := b.stored(charge)
	if done.Payment.Status != payments.StatusSucceeded || p.Status != payments.StatusSucceeded || p.AmountCaptured != 5000 || p.Sequence != charge.Sequence+1 || !p.FinalizedAt.Equal(b.Now()) {
		b.t.Errorf("recorded %+v, the charge %+v", done, p)
	}
	b.toldOf("oncepay.capture.succeeded", "oncepay.payment.succeeded")
	entries, err := b.Reader.Timeline(b.ctx, charge.TenantID, charge.ID)
	if err != nil || len(entries) != int(p.Sequence)+1 || entries[len(entries)-1].Status != payments.StatusSucceeded {
		b.t.Errorf("the charge's timeline: %+v, %v", entries, err)
	}
}

// followUpsRunInTurn: one that was accepted later knows of those before it, and may go on at once when the one ahead ends. One that Stripe is
// processing, or that has ended, is not waited for; one that waits for a person is.
func (b *storeBench) followUpsRunInTurn() {
	charge := b.taken("k")
	for _, key := range []string{"r1", "r2", "r3"} {
		b.ask(asking(payments.KindRefund, charge, key, 1000), payments.VerdictStored)
	}
	claims := map[string]payments.Claim{}
	for _, c := range b.take(10) {
		claims[c.Payment.IdempotencyKey] = c
	}
	for key, ahead := range map[string]bool{"r1": false, "r2": true, "r3": true} {
		if state := b.state(claims[key]); state.Ahead != ahead {
			b.t.Errorf("%s: %+v, want one ahead: %v", key, state, ahead)
		}
	}
	b.recordFollowUp(claims["r3"], behind(), time.Hour)
	b.recordFollowUp(claims["r2"], behind(), time.Hour)
	b.nothingDue("behind another")
	b.recordFollowUp(claims["r1"], refunding(claims["r1"].Payment), 2*time.Hour)
	c := b.takeOne()
	if c.Payment.IdempotencyKey != "r2" || b.state(c).Ahead {
		b.t.Errorf("next is %+v", c.Payment)
	}
	b.recordFollowUp(c, payments.Transition{Status: payments.StatusNeedsReview, Reason: payments.ReasonDisagrees}, 0)
	b.nothingDue("while one waits for a person")
	b.Advance(time.Hour)
	if c = b.takeOne(); c.Payment.IdempotencyKey != "r3" || !b.state(c).Ahead {
		b.t.Errorf("behind one that waits for a person: %+v", c.Payment)
	}
}

// recordFollowUpStale: whoever's token is not in the follow-up's ticket any more writes nothing, to it or to its charge.
func (b *storeBench) recordFollowUpStale() {
	charge := b.held("k")
	b.ask(asking(payments.KindCapture, charge, "c", 5000), payments.VerdictStored)
	b.sent()
	old := b.takeOne()
	b.Advance(lease)
	current := b.takeOne()
	before := b.stored(old.Payment)
	nobody, stranger := old, old
	nobody.Token, stranger.Token = payments.Token{}, newToken()
	for name, c := range map[string]payments.Claim{"an old token": old, "no token": nobody, "a token of nobody": stranger} {
		_, err := b.FollowUps.RecordFollowUp(b.ctx, b.recording(c, captured(old.Payment), 0))
		b.lost("RecordFollowUp with "+name, err)
	}
	b.unchanged(before)
	b.unchanged(charge)
	b.toldOf()
	b.recordFollowUp(current, captured(current.Payment), 0)
	_, err := b.FollowUps.RecordFollowUp(b.ctx, b.recording(old, behind(), 0))
	b.lost("RecordFollowUp after the end", err)
	b.toldOf("oncepay.capture.succeeded", "oncepay.payment.succeeded")
}

// recordFollowUpAgain: an owner that does not know whether its outcome was committed records it again and hears the same; what was given back counts once.
func (b *storeBench) recordFollowUpAgain() {
	charge := b.taken("k")
	b.ask(asking(payments.KindRefund, charge, "r", 4000), payments.VerdictStored)
	b.sent()
	c := b.takeOne()
	r := b.recording(c, refunded(c.Payment), 0)
	for range 3 {
		if done, err := b.FollowUps.RecordFollowUp(b.ctx, r); err != nil || done.Sequence != 1 || done.Payment.Status != payments.StatusSucceeded {
			b.t.Errorf("recorded %+v, %v", done, err)
		}
	}
	if p := b.stored(charge); p.AmountRefunded != 4000 {
		b.t.Errorf("the charge: %+v", p)
	}
	b.toldOf("oncepay.refund.succeeded")
}

// followUpTargetMoved: what the charge does not allow writes nothing, and the ticket stays its owner's.
func (b *storeBench) followUpTargetMoved() {
	claim := b.claim("k")
	charge := claim.Payment
	b.ask(asking(payments.KindCancel, charge, "x", 0), payments.VerdictStored)
	b.sent()
	c := b.takeUp("x")
	before, owned := b.stored(c.Payment), b.stored(charge)
	if _, err := b.FollowUps.RecordFollowUp(b.ctx, b.recording(c, canceling(), 0)); payments.ErrorCode(err) != payments.CodeTargetMoved {
		b.t.Errorf("RecordFollowUp: %v, want %s", err, payments.CodeTargetMoved)
	}
	b.unchanged(before)
	b.unchanged(owned)
	b.toldOf()
	b.record(claim, charged(charge), 0)
	b.recordFollowUp(c, payments.Transition{Status: payments.StatusFailed, Reason: "paid"}, 0)
	b.toldOf("oncepay.payment.succeeded", "oncepay.cancel.failed")
}

// cancelUnsent: a charge that nobody has begun ends by its cancel, and its ticket with it.
func (b *storeBench) cancelUnsent() {
	charge := b.admit(payments.AdmitRequest{Intent: b.intent("k"), Lane: payments.LaneBulk}, payments.VerdictStored).Payment
	f := b.ask(asking(payments.KindCancel, charge, "x", 0), payments.VerdictStored).FollowUp
	if f.Amount != 0 || f.StripePaymentIntent != "" || f.Currency != "usd" {
		b.t.Errorf("stored: %+v", f)
	}
	b.recordFollowUp(b.takeOne(), canceling(), 0)
	if p := b.stored(charge); p.Status != payments.StatusCanceled || p.Reason != "canceled_on_request" || p.Owned || !p.NextAttemptAt.IsZero() || p.FinalizedAt.IsZero() {
		b.t.Errorf("the charge: %+v", p)
	}
	if claims := b.takeFrom(b.Store, payments.LaneBulk, 10); len(claims) != 0 {
		b.t.Errorf("the canceled charge is given out: %+v", claims)
	}
	b.toldOf("oncepay.cancel.succeeded", "oncepay.payment.canceled")
	b.ask(asking(payments.KindCancel, charge, "y", 0), payments.VerdictInvalidState)
}

// followUpGivesUp: a follow-up that is given up has a dead letter, and stands in the way of those behind it until somebody decides.
func (b *storeBench) followUpGivesUp() {
	charge := b.taken("k")
	b.ask(asking(payments.KindRefund, charge, "r", 4000), payments.VerdictStored)
	b.sent()
	c := b.takeOne()
	b.recordFollowUp(c, payments.Transition{
		Status: payments.StatusStalled, Reason: payments.ReasonNotSent, CountTry: true, ClearSubmit: true, DeadLetter: payments.ReasonAttemptsExhausted,
	}, 0)
	letters, events := 0, map[string]int{}
	for _, it := range b.sent() {
		if events[it.EventType]++; it.Kind == payments.OutboxDeadLetter {
			letters++
		}
	}
	if p := b.stored(c.Payment); letters != 1 || events["oncepay.refund.stalled"] != 1 || p.Status != payments.StatusStalled || p.InDoubt || p.Tries != 1 {
		b.t.Errorf("%d letters, told %v, stored %+v", letters, events, p)
	}
	b.ask(asking(payments.KindRefund, charge, "more", 6000), payments.VerdictAmountExceeds)
	b.ask(asking(payments.KindRefund, charge, "less", 5900), payments.VerdictStored)
	if next := b.takeOne(); !b.state(next).Ahead {
		b.t.Error("the one that was given up holds up nobody")
	}
}
