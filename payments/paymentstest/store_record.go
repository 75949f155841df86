package paymentstest

import (
	"time"

	"github.com/oncepay/oncepay/payments"
)

// recordOutcome: each outcome is one entry and one event, n after n-1, under an id of its own; the last one ends the ticket.
func (b *storeBench) recordOutcome() {
	c := b.claim("k")
	b.Advance(time.Second)
	done := b.record(c, waits(payments.ReasonRateLimited), 5*time.Second)
	p := b.stored(c.Payment)
	if done.Sequence != 1 || p.Sequence != 1 || p.Status != payments.StatusWaiting || p.Reason != payments.ReasonRateLimited || p.Tries != 1 || p.Rounds != 1 ||
		p.Owned || p.InDoubt || !p.NextAttemptAt.Equal(b.Now().Add(5*time.Second)) || !p.UpdatedAt.Equal(b.Now()) || !p.FinalizedAt.IsZero() {
		b.t.Errorf("recorded %+v, stored %+v", done, p)
	}
	b.Advance(5 * time.Second)
	c = b.takeOne()
	b.record(c, inDoubt(payments.ReasonNoAnswer), time.Second)
	if p := b.stored(c.Payment); p.Status != payments.StatusUnknown || !p.InDoubt || p.Sequence != 2 {
		b.t.Errorf("stored: %+v", p)
	}
	b.Advance(time.Second)
	c = b.takeOne()
	done = b.record(c, charged(c.Payment), 0)
	p = b.stored(c.Payment)
	object := charged(p).Object
	if done.Sequence != 3 || p.Status != payments.StatusSucceeded || p.InDoubt || !p.FinalizedAt.Equal(b.Now()) || p.StripePaymentIntent != object.ID ||
		p.StripeCharge != object.LatestCharge || p.AmountCaptured != p.Amount || !p.NextAttemptAt.IsZero() || done.Payment.Status != p.Status {
		b.t.Errorf("recorded %+v, stored %+v", done, p)
	}
	b.Advance(365 * 24 * time.Hour)
	b.nothingDue("after the end")
	b.told(payments.StatusWaiting, payments.StatusUnknown, payments.StatusSucceeded)
}

// told wants the outbox to have exactly the events of these statuses, in order.
func (b *storeBench) told(statuses ...payments.Status) {
	b.t.Helper()
	items := b.sent()
	ids := map[string]bool{}
	for n, it := range items {
		ids[it.EventID] = true
		if n >= len(statuses) || it.Kind != payments.OutboxEvent || it.EventType != "oncepay.payment."+string(statuses[n]) || it.TenantID != b.Tenants[0] || len(it.Body) == 0 {
			b.t.Errorf("message %d is %s %s of %s, want the events of %v", n, it.Kind, it.EventType, it.TenantID, statuses)
		}
	}
	if len(items) != len(statuses) || len(ids) != len(items) {
		b.t.Errorf("%d messages under %d ids, want %d", len(items), len(ids), len(statuses))
	}
}

// recordStale: whoever's token is not in the ticket any more writes nothing, in any verb.
func (b *storeBench) recordStale() {
	old := b.claim("k")
	b.Advance(lease)
	current := b.takeOne()
	before := b.stored(old.Payment)
	nobody, stranger, missing := old, old, old
	nobody.Token, stranger.Token = payments.Token{}, newToken()
	missing.Payment.ID = payments.NewID(b.Tenants[0], "none")
	for name, c := range map[string]payments.Claim{"an old token": old, "no token": nobody, "a token of nobody": stranger, "no payment": missing} {
		_, err := b.Store.Record(b.ctx, b.recording(c, charged(old.Payment), 0))
		b.lost("Record with "+name, err)
		_, err = b.Store.Extend(b.ctx, c, time.Hour, true)
		b.lost("Extend with "+name, err)
		err = b.Store.BuryPayment(b.ctx, c, payments.DeadLetter{Reason: payments.ReasonHandlerPanic}, 0)
		if c.Payment.ID == old.Payment.ID || payments.ErrorCode(err) != payments.CodeNotFound { // where no payment is, either says enough
			b.lost("BuryPayment with "+name, err)
		}
	}
	b.unchanged(before)
	b.told()
	b.record(current, charged(current.Payment), 0)
	_, err := b.Store.Record(b.ctx, b.recording(old, waits("late"), 0))
	b.lost("Record after the end", err)
	b.told(payments.StatusSucceeded)
}

// recordAgain: an owner that does not know whether its outcome was committed records it again, through any process, and hears the same; it
// is written once.
func (b *storeBench) recordAgain() {
	c := b.claim("k")
	r := b.recording(c, waits(payments.ReasonLocked), time.Minute)
	first, err := b.Store.Record(b.ctx, r)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, s := range []payments.Store{b.Store, b.Another()} {
		again, err := s.Record(b.ctx, r)
		if err != nil || again.Sequence != first.Sequence || again.Payment.Tries != 1 {
			b.t.Errorf("again: %+v, %v; first %+v", again, err, first)
		}
	}
	b.Advance(time.Minute)
	c = b.takeOne()
	b.saidAgain(r, first)
	final := b.recording(c, charged(c.Payment), 0)
	for _, s := range []payments.Store{b.Store, b.Another()} {
		if again, err := s.Record(b.ctx, final); err != nil || again.Sequence != 2 || again.Payment.Status != payments.StatusSucceeded {
			b.t.Errorf("the end: %+v, %v", again, err)
		}
	}
	b.told(payments.StatusWaiting, payments.StatusSucceeded)
}

// saidAgain repeats a recording after the ticket has gone to somebody else. It may be told that it is lost, or what was written under its
// token; the new owner loses nothing by it.
func (b *storeBench) saidAgain(r payments.Recording, first payments.Recorded) {
	b.t.Helper()
	before := b.stored(r.Claim.Payment)
	if again, err := b.Store.Record(b.ctx, r); err != nil {
		b.lost("the same after a takeover", err)
	} else if again.Sequence != first.Sequence {
		b.t.Errorf("the same after a takeover: %+v, first %+v", again, first)
	}
	b.unchanged(before)
}

// recordQuiet: what is nothing new is stored, and nobody is told.
func (b *storeBench) recordQuiet() {
	c := b.claim("k")
	b.record(c, inDoubt(payments.ReasonLookingUp), 0)
	b.Advance(time.Second)
	c = b.takeOne()
	quiet := inDoubt(payments.ReasonLookingUp)
	quiet.AbsentAt, quiet.Rounds = b.Now(), 2
	done := b.record(c, quiet, time.Hour)
	p := b.stored(c.Payment)
	if done.Sequence != 0 || p.Sequence != 1 || !p.AbsentAt.Equal(b.Now()) || p.Rounds != 2 || p.Owned || !p.NextAttemptAt.Equal(b.Now().Add(time.Hour)) {
		b.t.Errorf("recorded %+v, stored %+v", done, p)
	}
	b.told(payments.StatusUnknown)
}

// recordClearSubmit: an owner that sent nothing takes the time of its send back.
func (b *storeBench) recordClearSubmit() {
	c := b.claim("k")
	t := waits(payments.ReasonNotSent)
	t.ClearSubmit = true
	b.record(c, t, 0)
	if p := b.stored(c.Payment); !p.FirstSubmitAt.IsZero() || !p.LastSubmitAt.IsZero() || p.InDoubt {
		b.t.Errorf("stored: %+v", p)
	}
}

// recordImpossible: a move that the state machine does not have is a bug, and writes nothing.
func (b *storeBench) recordImpossible() {
	c := b.claim("k")
	before := b.stored(c.Payment)
	for _, t := range []payments.Transition{
		{Status: payments.StatusReceived}, {Status: payments.StatusProcessing}, {Status: "odd"}, {}, {ThenSend: true},
	} {
		if _, err := b.Store.Record(b.ctx, b.recording(c, t, 0)); payments.ErrorCode(err) != payments.CodeInternal {
			b.t.Errorf("%+v: %v, want %s", t, err, payments.CodeInternal)
		}
	}
	b.unchanged(before)
	b.record(c, charged(c.Payment), 0)
	b.told(payments.StatusSucceeded)
}

// recordGivesUp: a payment that is given up has a dead letter from the same moment on, whose copy is sent.
func (b *storeBench) recordGivesUp() {
	c := b.claim("k")
	t := payments.Transition{
		Status: payments.StatusStalled, Reason: payments.ReasonNotSent, CountTry: true, ClearSubmit: true, DeadLetter: payments.ReasonAttemptsExhausted,
	}
	b.record(c, t, 0)
	if p := b.stored(c.Payment); p.Status != payments.StatusStalled || !p.NextAttemptAt.IsZero() || p.InDoubt {
		b.t.Errorf("stored: %+v", p)
	}
	events, letters := map[string]int{}, 0
	for _, it := range b.sent() {
		if events[it.EventType]++; it.Kind == payments.OutboxDeadLetter {
			letters++
		}
	}
	if events["oncepay.payment.stalled"] != 1 || events["oncepay.payment.dead_lettered"] != 1 || letters != 1 {
		b.t.Errorf("told: %v, %d copies of dead letters", events, letters)
	}
	b.Advance(365 * 24 * time.Hour)
	b.nothingDue("after it was given up")
}

// extend: a lease goes on from now; before a send its time is committed.
func (b *storeBench) extend() {
	c := b.claim("k")
	sent := b.Now()
	b.Advance(lease / 2)
	next, err := b.Store.Extend(b.ctx, c, lease, false)
	if err != nil || next.Token != c.Token || next.LeaseUntil.After(b.Now().Add(lease)) || !next.LeaseUntil.After(c.LeaseUntil) {
		b.t.Fatalf("Extend: %+v, %v", next, err)
	}
	if p := b.stored(c.Payment); !p.LastSubmitAt.Equal(sent) || !p.Owned {
		b.t.Errorf("stored: %+v", p)
	}
	b.Advance(lease * 3 / 4)
	b.nothingDue("within the extended lease")
	next, err = b.Store.Extend(b.ctx, next, lease, true)
	if err != nil || !next.Payment.LastSubmitAt.Equal(b.Now()) {
		b.t.Fatalf("Extend before a send: %+v, %v", next, err)
	}
	if p := b.stored(c.Payment); !p.LastSubmitAt.Equal(b.Now()) || !p.FirstSubmitAt.Equal(sent) || !p.InDoubt {
		b.t.Errorf("stored before a send: %+v", p)
	}
	b.Advance(lease)
	again := b.takeOne()
	if again.Abandoned != 1 {
		b.t.Errorf("after the lease: %+v", again)
	}
	again.Abandoned = 4
	if next, err = b.Store.Extend(b.ctx, again, lease, false); err != nil || next.Abandoned != 4 {
		b.t.Fatalf("Extend with a count: %+v, %v", next, err)
	}
	again.Abandoned = 0
	if _, err = b.Store.Extend(b.ctx, again, lease, true); err != nil {
		b.t.Fatal(err)
	}
	b.Advance(lease)
	if c := b.takeOne(); c.Abandoned != 1 {
		b.t.Errorf("after the lease of one whose count was written anew: %+v", c)
	}
}
