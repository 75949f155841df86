package paymentstest

import (
	"bytes"
	"errors"
	"time"

	"github.com/oncepay/oncepay/payments"
)

func (b *storeBench) evidence(p payments.Payment, t payments.Transition) payments.Recorded {
	b.t.Helper()
	done, err := b.Store.Evidence(b.ctx, p.TenantID, p.ID, func(payments.Payment) (payments.Transition, error) { return t, nil })
	if err != nil {
		b.t.Fatalf("Evidence %s: %v", t.Status, err)
	}
	return done
}

// evidenceTearsUp: what somebody else learnt ends the ticket, and its owner comes too late. Known evidence tells nobody anything.
func (b *storeBench) evidenceTearsUp() {
	c := b.claim("k")
	if done := b.evidence(c.Payment, charged(c.Payment)); done.Sequence != 1 || done.Payment.Status != payments.StatusSucceeded {
		b.t.Errorf("Evidence: %+v", done)
	}
	_, err := b.Store.Record(b.ctx, b.recording(c, waits("late"), 0))
	b.lost("Record after evidence", err)
	_, err = b.Store.Extend(b.ctx, c, lease, true)
	b.lost("Extend after evidence", err)
	if again := b.evidence(c.Payment, charged(c.Payment)); again.Sequence != 0 || again.Payment.Sequence != 1 {
		b.t.Errorf("the same evidence again: %+v", again)
	}
	b.Advance(lease)
	b.nothingDue("after evidence")
	b.told(payments.StatusSucceeded)
}

// evidenceReplaces: a payment that somebody must still act on gets a new ticket. Its late owner may have sent, so it stays in doubt.
func (b *storeBench) evidenceReplaces() {
	c := b.claim("k")
	b.evidence(c.Payment, payments.Transition{Status: payments.StatusWaiting, Reason: "replayed"})
	_, err := b.Store.Record(b.ctx, b.recording(c, charged(c.Payment), 0))
	b.lost("Record after evidence", err)
	if p := b.stored(c.Payment); p.Owned || !p.InDoubt || p.Status != payments.StatusWaiting {
		b.t.Errorf("stored: %+v", p)
	}
	next := b.takeOne()
	if next.Abandoned != 0 || !next.Payment.InDoubt || next.Token == c.Token {
		b.t.Errorf("the new claim: %+v", next)
	}
	b.record(next, charged(next.Payment), 0)
	b.told(payments.StatusWaiting, payments.StatusSucceeded)
}

// evidenceCorrects: of the final statuses only succeeded can still come, and visibly.
func (b *storeBench) evidenceCorrects() {
	c := b.claim("k")
	failed := payments.Transition{Status: payments.StatusFailed, Reason: "card_declined", Failure: &payments.Failure{Code: "card_declined", Message: "No."}}
	b.record(c, failed, 0)
	if p := b.stored(c.Payment); p.Failure == nil || *p.Failure != *failed.Failure || p.FinalizedAt.IsZero() {
		b.t.Errorf("stored: %+v %+v", p, p.Failure)
	}
	before := b.stored(c.Payment)
	for _, status := range payments.Statuses() {
		if status == payments.StatusSucceeded || status == payments.StatusFailed {
			continue
		}
		_, err := b.Store.Evidence(b.ctx, c.Payment.TenantID, c.Payment.ID, func(payments.Payment) (payments.Transition, error) {
			return payments.Transition{Status: status}, nil
		})
		if payments.ErrorCode(err) != payments.CodeInternal {
			b.t.Errorf("failed to %s: %v, want %s", status, err, payments.CodeInternal)
		}
	}
	b.unchanged(before)
	if done := b.evidence(c.Payment, charged(c.Payment)); done.Sequence != 2 || done.Payment.Reason == "" {
		b.t.Errorf("a correction: %+v", done)
	}
	if p := b.stored(c.Payment); p.Status != payments.StatusSucceeded || p.Failure != nil || p.AmountCaptured != p.Amount {
		b.t.Errorf("corrected: %+v", p)
	}
	b.told(payments.StatusFailed, payments.StatusSucceeded)
}

// evidenceErrors: decide sees the payment as it stands, and what it refuses is not written.
func (b *storeBench) evidenceErrors() {
	c := b.claim("k")
	before := b.stored(c.Payment)
	refusal := errors.New("not enough")
	_, err := b.Store.Evidence(b.ctx, c.Payment.TenantID, c.Payment.ID, func(p payments.Payment) (payments.Transition, error) {
		if !p.Owned || !p.InDoubt || p.ID != c.Payment.ID || p.Amount != c.Payment.Amount {
			b.t.Errorf("decide sees %+v", p)
		}
		return payments.Transition{}, refusal
	})
	if !errors.Is(err, refusal) {
		b.t.Errorf("what decide returned: %v", err)
	}
	never := func(p payments.Payment) (payments.Transition, error) {
		b.t.Errorf("decide was asked of %+v", p)
		return payments.Transition{}, refusal
	}
	for _, tenant := range []string{b.Tenants[1], "conformance-nobody"} {
		if _, err := b.Store.Evidence(b.ctx, tenant, c.Payment.ID, never); payments.ErrorCode(err) != payments.CodeNotFound {
			b.t.Errorf("for %s: %v, want %s", tenant, err, payments.CodeNotFound)
		}
	}
	b.unchanged(before)
	b.record(c, charged(c.Payment), 0) // the ticket is its owner's still
}

// buryPayment: given up while a send is in doubt, it goes on being looked up; while Stripe is processing it, it goes on being read.
func (b *storeBench) buryPayment() {
	for key, stays := range map[string]payments.Status{"sent": payments.StatusUnknown, "pending": payments.StatusPending} {
		c := b.claim(key)
		if stays == payments.StatusPending {
			b.record(c, processing(c.Payment), 0)
			c = b.takeOne()
		}
		letter := payments.DeadLetter{Reason: payments.ReasonWorkerKilled, Message: "gone: \x00\xff", Tries: 3}
		for range 2 { // the second time is a repetition of a call whose answer was lost
			if err := b.Store.BuryPayment(b.ctx, c, letter, time.Minute); err != nil {
				b.t.Fatalf("BuryPayment: %v", err)
			}
		}
		if p := b.stored(c.Payment); p.Status != stays || p.Owned || !p.NextAttemptAt.Equal(b.Now().Add(time.Minute)) || p.InDoubt != (stays == payments.StatusUnknown) {
			b.t.Errorf("%s: %+v", key, p)
		}
		copies := 0
		for _, it := range b.sent() {
			if it.Kind == payments.OutboxDeadLetter {
				copies++
			}
		}
		if copies != 1 {
			b.t.Errorf("%s: %d copies of the dead letter, want 1", key, copies)
		}
		b.nothingDue("before its time")
		b.Advance(time.Minute)
		b.record(b.takeOne(), charged(c.Payment), 0)
		b.sent()
	}
}

// message is a dead letter of the stream's message with the number.
func (b *storeBench) message(sequence uint64) payments.DeadLetter {
	return payments.DeadLetter{
		Reason: payments.ReasonUndecodable, Message: "it is no JSON: \x00", TenantID: b.Tenants[0], Payload: []byte("{\"a\":\"\x00\xff\\ud800\"}"), Tries: 1,
		Headers: []byte("NATS/1.0\r\nA: \xff\r\n\r\n"),
		Origin: payments.MessageOrigin{
			Stream: "PAYMENTS_INTENTS", StreamCreated: time.Date(2030, 1, 1, 0, 0, 0, 123456789, time.UTC), Sequence: sequence, Subject: "payments.intent.acme",
		},
	}
}

// buryMessage: the same message again is the same dead letter; the same number of a stream that was made anew is another.
func (b *storeBench) buryMessage() {
	bury := func(d payments.DeadLetter, copies int) {
		b.t.Helper()
		if err := b.Store.BuryMessage(b.ctx, d); err != nil {
			b.t.Fatalf("BuryMessage: %v", err)
		}
		items := b.sent()
		for _, it := range items {
			if it.Kind != payments.OutboxDeadLetter || len(it.Body) == 0 {
				b.t.Errorf("a message that is no dead letter: %+v", it)
			}
		}
		if len(items) != copies {
			b.t.Errorf("%d copies, want %d", len(items), copies)
		}
	}
	d := b.message(7)
	bury(d, 1)
	b.Advance(time.Minute)
	bury(d, 0)
	anew := d
	anew.Origin.StreamCreated = anew.Origin.StreamCreated.Add(time.Hour)
	bury(anew, 1)
	bury(b.message(8), 1)
	// Not one byte of a card number is kept.
	card := b.message(9)
	card.Reason, card.Message, card.Payload = payments.ReasonCardNumber, "a card number", []byte(`{"description":"4242424242424242"}`)
	if err := b.Store.BuryMessage(b.ctx, card); err != nil {
		b.t.Fatal(err)
	}
	if items := b.sent(); len(items) != 1 || bytes.Contains(items[0].Body, []byte("4242")) || bytes.Contains(items[0].Body, []byte("payload_base64")) {
		b.t.Errorf("%d copies of a card number's", len(items))
	}
}

// suspect: each start of a message that never reached Admit counts; Admit ends the count, and a dead letter opens it.
func (b *storeBench) suspect() {
	starts := func(d payments.DeadLetter, want int) {
		b.t.Helper()
		if got, err := b.Store.Suspect(b.ctx, d); err != nil || got != want {
			b.t.Errorf("%d starts, %v; want %d", got, err, want)
		}
	}
	survives, dies := b.message(1), b.message(2)
	for n := 1; n <= payments.SuspectStartsMax; n++ {
		starts(survives, n)
		starts(dies, n)
	}
	if items := b.sent(); len(items) != 0 {
		b.t.Errorf("a suspect is told of: %+v", items)
	}
	r := b.claiming(b.intent("k"))
	r.Suspect = &survives.Origin
	b.admit(r, payments.VerdictClaimed)
	starts(survives, 1)
	if err := b.Store.BuryMessage(b.ctx, dies); err != nil {
		b.t.Fatal(err)
	}
	if items := b.sent(); len(items) != 1 {
		b.t.Errorf("%d copies of the opened dead letter, want 1", len(items))
	}
	if got, err := b.Store.Suspect(b.ctx, dies); err != nil || got <= payments.SuspectStartsMax {
		b.t.Errorf("a start of a message whose dead letter is open: %d, %v; want more than %d", got, err, payments.SuspectStartsMax)
	}
}
