package postgres

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

func lost(t *testing.T, err error) {
	t.Helper()
	if !payments.TicketLost(err) {
		t.Errorf("got %v, want %s", err, payments.CodeTicketLost)
	}
}

// TestRecordAfterTakeover: the write of an owner who overslept changes nothing.
func TestRecordAfterTakeover(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	old := b.claim("k")
	b.clock.Advance(2 * time.Minute)
	current := b.take(payments.TakeRequest{Limit: 1})[0]
	before := b.find(old)

	_, err := b.Record(ctx, payments.Recording{Claim: old, Transition: succeeded(old.Payment), At: b.clock.Now()})
	lost(t, err)
	_, err = b.Extend(ctx, old, time.Hour, true)
	lost(t, err)
	lost(t, b.BuryPayment(ctx, old, payments.DeadLetter{Reason: payments.ReasonHandlerPanic}, 0))
	nobody := old
	nobody.Token = payments.Token{}
	_, err = b.Record(ctx, payments.Recording{Claim: nobody, Transition: succeeded(old.Payment), At: b.clock.Now()})
	lost(t, err)
	missing := old
	missing.Payment.ID = payments.NewID("acme", "none")
	_, err = b.Record(ctx, payments.Recording{Claim: missing, Transition: succeeded(old.Payment), At: b.clock.Now()})
	lost(t, err)
	if after := b.find(old); after.Status != before.Status || after.Sequence != 0 || !after.LastSubmitAt.Equal(before.LastSubmitAt) || !after.Owned {
		t.Errorf("something was written:\n%+v\n%+v", before, after)
	}
	if n, err := b.OutboxDepth(ctx); n != 0 || err != nil {
		t.Errorf("outbox: %d, %v", n, err)
	}
	if done := b.record(current, succeeded(current.Payment), 0); done.Sequence != 1 {
		t.Errorf("the owner's record: %+v", done)
	}
	_, err = b.Record(ctx, payments.Recording{Claim: old, Transition: succeeded(old.Payment), At: b.clock.Now()})
	lost(t, err)
}

// TestRecordBesideALockedRow: a row that somebody keeps locked holds up its own payment, and no other.
func TestRecordBesideALockedRow(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	claims := []payments.Claim{b.claim("locked"), b.claim("k1"), b.claim("k2"), b.claim("k3")}
	tx, err := b.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx)
	if _, err := tx.Exec(ctx, "SELECT FROM payments WHERE idempotency_key = 'locked' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i, c := range claims {
		all.Go(func() {
			_, err := b.Record(ctx, payments.Recording{Claim: c, Transition: succeeded(c.Payment), At: b.clock.Now()})
			if (i == 0) != payments.Retryable(err) || i > 0 && err != nil {
				t.Errorf("%s: %v", c.Payment.IdempotencyKey, err)
			}
		})
	}
	all.Wait() // the row is still locked
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if done := b.record(claims[0], succeeded(claims[0].Payment), 0); done.Sequence != 1 {
		t.Errorf("afterwards: %+v", done)
	}
}

// TestRecordAgain: the same recording a second time is answered from what is stored, and writes nothing.
func TestRecordAgain(t *testing.T) {
	t.Parallel()
	b := open(t)
	c := b.claim("k")
	first := b.record(c, waiting(payments.ReasonRateLimited), time.Minute)
	again := b.record(c, waiting(payments.ReasonRateLimited), time.Minute)
	if again.Sequence != first.Sequence || again.Payment.Tries != 1 || len(b.sent.all()) != 1 {
		t.Errorf("first %+v\nagain %+v", first, again)
	}
}

// TestRecordAgainInOneFlush: twice under one token in the same flush is written once.
func TestRecordAgainInOneFlush(t *testing.T) {
	t.Parallel()
	b := open(t)
	c := b.claim("k")
	r := payments.Recording{Claim: c, Transition: succeeded(c.Payment), At: b.clock.Now()}
	results, err := b.flushRecord(context.Background(), []*payments.Recording{&r, &r})
	if err != nil || results[0].Err != nil || results[0].Value.Sequence != 1 {
		t.Fatalf("%+v, %v", results, err)
	}
	if results[1].Err != nil || results[1].Value.Sequence != 1 || len(b.sent.all()) != 1 {
		t.Errorf("%+v, %d events", results[1], len(b.sent.all()))
	}
}

func TestRecordQuiet(t *testing.T) {
	t.Parallel()
	b := open(t)
	c := b.claim("k")
	b.record(c, unknown(payments.ReasonLookingUp), 0)
	b.clock.Advance(time.Second)
	c = b.take(payments.TakeRequest{Limit: 1})[0]
	quiet := unknown(payments.ReasonLookingUp)
	quiet.AbsentAt, quiet.Rounds = b.clock.Now(), 2
	done := b.record(c, quiet, time.Hour)
	p := b.find(c)
	if done.Sequence != 0 || len(b.sent.all()) != 1 || p.Sequence != 1 {
		t.Errorf("a quiet transition told somebody: %+v", done)
	}
	if !p.AbsentAt.Equal(b.clock.Now()) || p.Rounds != 2 || !p.NextAttemptAt.Equal(b.clock.Now().Add(time.Hour)) || p.Owned {
		t.Errorf("stored: %+v", p)
	}
	if again := b.record(c, quiet, time.Hour); again.Sequence != 0 {
		t.Errorf("again: %+v", again)
	}
}

func TestRecordClearSubmit(t *testing.T) {
	t.Parallel()
	b := open(t)
	c := b.claim("k")
	w := waiting(payments.ReasonNotSent)
	w.ClearSubmit = true
	b.record(c, w, 0)
	if p := b.find(c); !p.FirstSubmitAt.IsZero() || !p.LastSubmitAt.IsZero() || p.InDoubt {
		t.Errorf("stored: %+v", p)
	}
}

func TestRecordStalled(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	c := b.claim("k")
	done := b.record(c, payments.Transition{Status: payments.StatusStalled, Reason: payments.ReasonNotSent, CountTry: true, ClearSubmit: true, DeadLetter: payments.ReasonAttemptsExhausted}, 0)
	if done.Sequence != 2 || done.Payment.Status != payments.StatusStalled {
		t.Errorf("Record: %+v", done)
	}
	letters, _, err := b.DeadLetters(ctx, DeadLettersRequest{LetterFilter: payments.LetterFilter{TenantID: "acme"}})
	if err != nil || len(letters) != 1 || letters[0].Reason != payments.ReasonAttemptsExhausted || letters[0].State != payments.DeadLetterOpen ||
		*letters[0].PaymentID != c.Payment.ID || letters[0].IdempotencyKey != "k" || letters[0].Tries != 1 {
		t.Fatalf("DeadLetters: %+v, %v", letters, err)
	}
	items := b.sent.all()
	if len(items) != 3 || items[0].EventType != "oncepay.payment.stalled" || items[1].EventType != schema.EventPaymentDeadLettered ||
		items[2].Kind != payments.OutboxDeadLetter || items[2].TenantID != "acme" || !strings.Contains(string(items[2].Body), letters[0].ID) {
		t.Errorf("messages: %+v", items)
	}

	// Taken up again by a replay, and given up again: the same dead letter.
	replay := func(p payments.Payment) (payments.Transition, error) {
		return payments.Transition{Status: payments.StatusWaiting, Reason: "replayed"}, nil
	}
	if _, err := b.Evidence(ctx, "acme", c.Payment.ID, replay); err != nil {
		t.Fatal(err)
	}
	c = b.take(payments.TakeRequest{Limit: 1})[0]
	b.record(c, payments.Transition{Status: payments.StatusStalled, Reason: payments.ReasonNotSent, CountTry: true, DeadLetter: payments.ReasonAttemptsExhausted}, 0)
	again, _, err := b.DeadLetters(ctx, DeadLettersRequest{LetterFilter: payments.LetterFilter{TenantID: "acme"}})
	if err != nil || len(again) != 1 || again[0].ID != letters[0].ID || again[0].Tries != 2 {
		t.Errorf("given up again: %+v, %v", again, err)
	}
}

func TestRecordRefusesImpossibleMoves(t *testing.T) {
	t.Parallel()
	b := open(t)
	c := b.claim("k")
	for _, s := range []payments.Status{payments.StatusReceived, payments.StatusProcessing, "", "odd"} {
		_, err := b.Record(context.Background(), payments.Recording{Claim: c, Transition: payments.Transition{Status: s}, At: b.clock.Now()})
		if payments.ErrorCode(err) != payments.CodeInternal {
			t.Errorf("%q: %v", s, err)
		}
	}
	if _, err := b.Record(context.Background(), payments.Recording{Claim: c, Transition: payments.Transition{ThenSend: true}}); payments.ErrorCode(err) != payments.CodeInternal {
		t.Errorf("ThenSend: %v", err)
	}
	b.record(c, succeeded(c.Payment), 0)
}

// TestAnImpossibleEndKeepsItsTicket: tickets of outcomes are deleted as they are found, so what cannot be recorded must not be among them.
func TestAnImpossibleEndKeepsItsTicket(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	claims := b.claims(3)
	var all sync.WaitGroup
	for i, c := range claims {
		all.Go(func() {
			end := succeeded(c.Payment)
			if i == 1 {
				end = payments.Transition{Status: "no such status"}
			}
			if _, err := b.Record(ctx, payments.Recording{Claim: c, Transition: end, At: b.clock.Now()}); (i == 1) != (payments.ErrorCode(err) == payments.CodeInternal) || i != 1 && err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	all.Wait()
	if n, err := b.TicketCount(ctx); n != 1 || err != nil {
		t.Errorf("tickets: %d, %v", n, err)
	}
	b.record(claims[1], succeeded(claims[1].Payment), 0)
}

// TestEndsAndStaysInOneFlush: of one claim's recordings the first counts, whether or not one of them ends the ticket.
func TestEndsAndStaysInOneFlush(t *testing.T) {
	t.Parallel()
	for _, endsFirst := range []bool{true, false} {
		b := open(t)
		c := b.claim("k")
		batch := []*payments.Recording{
			{Claim: c, Transition: succeeded(c.Payment), At: b.clock.Now()}, {Claim: c, Transition: waiting("locked"), At: b.clock.Now(), Delay: time.Minute},
		}
		want, tickets := payments.StatusSucceeded, int64(0)
		if !endsFirst {
			batch[0], batch[1] = batch[1], batch[0]
			want, tickets = payments.StatusWaiting, 1
		}
		results, err := b.flushRecord(context.Background(), batch)
		if err != nil || results[0].Err != nil || results[1].Err != nil {
			t.Fatal(err, results)
		}
		if p := b.find(c); p.Status != want || results[1].Value.Payment.Status != want {
			t.Errorf("%s, and told the second %s; want %s", p.Status, results[1].Value.Payment.Status, want)
		}
		if n, err := b.TicketCount(context.Background()); int64(n) != tickets || err != nil {
			t.Errorf("tickets: %d, %v, want %d", n, err, tickets)
		}
	}
}

// TestRecordKeepsStripesText: what Stripe or a look-up says can hold anything, and is stored all the same.
func TestRecordKeepsStripesText(t *testing.T) {
	t.Parallel()
	b := open(t)
	c := b.claim("k")
	long := strings.Repeat("é", 5000)
	b.record(c, payments.Transition{Status: payments.StatusNeedsReview, Reason: "a\x00b\xff" + long, InDoubt: true,
		Failure: &payments.Failure{Code: "\x00", Message: long, DeclineCode: "\xed\xa0\x80"},
		Object:  &payments.PaymentIntent{ID: "pi_\x00", AmountReceived: 1 << 40, LatestCharge: "ch"}}, 0)
	p := b.find(c)
	if p.Status != payments.StatusNeedsReview || !p.InDoubt || p.AmountCaptured != p.Amount || len(p.Reason) > reasonMax || len(p.Failure.Message) > messageMax ||
		!strings.HasPrefix(p.Reason, "a\uFFFDb\uFFFD") {
		t.Errorf("stored: %+v %+v", p, p.Failure)
	}
}

func TestExtend(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	c := b.claim("k")
	b.clock.Advance(30 * time.Second)
	next, err := b.Extend(ctx, c, time.Minute, false)
	if err != nil || !next.LeaseUntil.Equal(b.clock.Now().Add(time.Minute)) || next.Token != c.Token {
		t.Fatalf("Extend: %+v, %v", next, err)
	}
	if p := b.find(c); !p.LastSubmitAt.Equal(b.clock.Now().Add(-30 * time.Second)) {
		t.Errorf("a time of a send was set: %+v", p)
	}
	b.clock.Advance(45 * time.Second)
	if got := b.take(payments.TakeRequest{Limit: 1}); len(got) != 0 {
		t.Fatalf("taken within the lease: %+v", got)
	}
	next, err = b.Extend(ctx, next, time.Minute, true)
	if err != nil || !next.Payment.LastSubmitAt.Equal(b.clock.Now()) || !next.Payment.FirstSubmitAt.IsZero() {
		t.Fatalf("Extend before a send: %+v, %v", next, err)
	}
	if p := b.find(c); !p.LastSubmitAt.Equal(b.clock.Now()) || !p.FirstSubmitAt.Before(p.LastSubmitAt) || !p.InDoubt {
		t.Errorf("stored: %+v", p)
	}
	b.clock.Advance(time.Minute)
	if got := b.take(payments.TakeRequest{Limit: 1}); len(got) != 1 || got[0].Abandoned != 1 {
		t.Fatalf("after the lease: %+v", got)
	}
}

// TestRecordMany: recordings of many owners at once, with takers and readers among them; never is a ticket missing or left over.
func TestRecordMany(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	claims := b.claims(100)
	var wg sync.WaitGroup
	for i, c := range claims {
		wg.Go(func() {
			switch i % 3 {
			case 0:
				b.record(c, succeeded(c.Payment), 0)
			case 1:
				b.record(c, waiting(payments.ReasonLocked), 0)
			case 2:
				_, err := b.Evidence(ctx, "acme", c.Payment.ID, func(p payments.Payment) (payments.Transition, error) { return succeeded(p), nil })
				if err != nil {
					t.Errorf("Evidence: %v", err)
				}
				_, err = b.Record(ctx, payments.Recording{Claim: c, Transition: waiting("late"), At: b.clock.Now()})
				lost(t, err)
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			b.check()
			for _, c := range b.take(payments.TakeRequest{Limit: 10}) {
				wg.Go(func() { b.record(c, succeeded(c.Payment), 0) })
			}
		}
	})
	wg.Wait()
	for _, c := range b.take(payments.TakeRequest{Limit: 1000}) {
		b.record(c, succeeded(c.Payment), 0)
	}
	for _, c := range claims {
		if p := b.find(c); p.Status != payments.StatusSucceeded {
			t.Errorf("%s is %s", p.IdempotencyKey, p.Status)
		}
	}
	if n := b.pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("%d connections are still taken", n)
	}
}
