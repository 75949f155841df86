package postgres

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

func (b *bench) evidence(c payments.Claim, t payments.Transition) payments.Recorded {
	b.t.Helper()
	done, err := b.Evidence(context.Background(), c.Payment.TenantID, c.Payment.ID, func(payments.Payment) (payments.Transition, error) { return t, nil })
	if err != nil {
		b.t.Fatalf("Evidence %s: %v", t.Status, err)
	}
	return done
}

func TestEvidenceTearsUpTheTicket(t *testing.T) {
	t.Parallel()
	b := open(t)
	c := b.claim("k")
	done := b.evidence(c, succeeded(c.Payment))
	if done.Sequence != 1 || done.Payment.Status != payments.StatusSucceeded {
		t.Errorf("Evidence: %+v", done)
	}
	_, err := b.Record(context.Background(), payments.Recording{Claim: c, Transition: waiting("late"), At: b.clock.Now()})
	lost(t, err)
	if again := b.evidence(c, succeeded(c.Payment)); again.Sequence != 0 || again.Payment.Sequence != 1 {
		t.Errorf("the same evidence again: %+v", again)
	}
}

func TestEvidenceReplacesTheTicket(t *testing.T) {
	t.Parallel()
	b := open(t)
	c := b.claim("k")
	b.evidence(c, payments.Transition{Status: payments.StatusWaiting, Reason: "replayed"})
	_, err := b.Record(context.Background(), payments.Recording{Claim: c, Transition: succeeded(c.Payment), At: b.clock.Now()})
	lost(t, err)
	if p := b.find(c); p.Owned || !p.InDoubt {
		t.Errorf("whoever had it may be sending: %+v", p)
	}
	got := b.take(payments.TakeRequest{Limit: 1})
	if len(got) != 1 || !got[0].Payment.InDoubt || got[0].Abandoned != 0 {
		t.Fatalf("Take: %+v", got)
	}
	b.record(got[0], succeeded(c.Payment), 0)
}

func TestEvidenceOnEnds(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	c := b.claim("k")
	b.record(c, payments.Transition{Status: payments.StatusFailed, Reason: "card_declined", Failure: &payments.Failure{Code: "card_declined"}}, 0)
	for _, s := range payments.Statuses() {
		if s == payments.StatusSucceeded || s == payments.StatusFailed {
			continue
		}
		_, err := b.Evidence(ctx, "acme", c.Payment.ID, func(payments.Payment) (payments.Transition, error) { return payments.Transition{Status: s}, nil })
		if payments.ErrorCode(err) != payments.CodeInternal {
			t.Errorf("failed to %s: %v", s, err)
		}
	}
	b.clock.Advance(time.Hour)
	done := b.evidence(c, succeeded(c.Payment))
	p := b.find(c)
	if done.Sequence != 2 || p.Status != payments.StatusSucceeded || p.Reason != "corrected_from_failed" || p.Failure != nil || !p.FinalizedAt.Equal(b.clock.Now()) {
		t.Errorf("a correction: %+v", p)
	}
	entries, err := b.Timeline(ctx, "acme", c.Payment.ID)
	if err != nil || len(entries) != 3 || entries[2].Reason != "corrected_from_failed" || entries[2].Type != "oncepay.payment.succeeded" {
		t.Errorf("Timeline: %+v, %v", entries, err)
	}
}

func TestEvidenceErrors(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	c := b.claim("k")
	refusal := errors.New("no")
	_, err := b.Evidence(ctx, "acme", c.Payment.ID, func(p payments.Payment) (payments.Transition, error) {
		if !p.Owned || !p.InDoubt {
			t.Errorf("decide sees %+v", p)
		}
		return payments.Transition{}, &payments.Error{Code: payments.CodeInvalid, Err: refusal}
	})
	if !errors.Is(err, refusal) || payments.ErrorCode(err) != payments.CodeInvalid {
		t.Errorf("what decide returned: %v", err)
	}
	for _, tenant := range []string{"globex", "nobody"} {
		if _, err := b.Evidence(ctx, tenant, c.Payment.ID, nil); payments.ErrorCode(err) != payments.CodeNotFound {
			t.Errorf("%s: %v", tenant, err)
		}
	}
	b.record(c, succeeded(c.Payment), 0)
}

func TestBuryPayment(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()

	// Somebody was given the right to send: the payment goes on being looked up.
	c := b.claim("doubt")
	letter := payments.DeadLetter{Reason: payments.ReasonHandlerPanic, Message: "panic: \x00", Tries: 3}
	if err := b.BuryPayment(ctx, c, letter, time.Minute); err != nil {
		t.Fatal(err)
	}
	p := b.find(c)
	if p.Status != payments.StatusUnknown || !p.InDoubt || p.Owned || !p.NextAttemptAt.Equal(b.clock.Now().Add(time.Minute)) || p.Reason != "handler_panic" {
		t.Errorf("in doubt: %+v", p)
	}
	if err := b.BuryPayment(ctx, c, letter, time.Minute); err != nil {
		t.Errorf("the same again: %v", err)
	}
	if items := b.sent.all(); len(items) != 3 || items[0].EventType != "oncepay.payment.unknown" || items[1].EventType != schema.EventPaymentDeadLettered ||
		items[2].Kind != payments.OutboxDeadLetter {
		t.Errorf("messages: %+v", items)
	}

	// Nothing can have been charged: an owner that had no right to send, as after an answer that nothing was executed and a torn-up ticket.
	c = b.claim("clear")
	if _, err := b.pool.Exec(ctx, "UPDATE payments SET in_doubt = false WHERE idempotency_key = 'clear'"); err != nil {
		t.Fatal(err)
	}
	if err := b.BuryPayment(ctx, c, payments.DeadLetter{Reason: payments.ReasonWorkerKilled}, time.Minute); err != nil {
		t.Fatal(err)
	}
	if p := b.find(c); p.Status != payments.StatusStalled || !p.NextAttemptAt.IsZero() {
		t.Errorf("not in doubt: %+v", p)
	}

	// Stripe is processing it: that goes on.
	c = b.claim("pending")
	b.record(c, payments.Transition{Status: payments.StatusPending, Reason: payments.ReasonProcessing, Object: succeeded(c.Payment).Object}, 0)
	b.clock.Advance(time.Second)
	c = b.take(payments.TakeRequest{Limit: 1})[0]
	if err := b.BuryPayment(ctx, c, payments.DeadLetter{Reason: payments.ReasonWorkerKilled}, time.Minute); err != nil {
		t.Fatal(err)
	}
	if p := b.find(c); p.Status != payments.StatusPending || p.NextAttemptAt.IsZero() {
		t.Errorf("pending: %+v", p)
	}
	if letters, _, err := b.DeadLetters(ctx, DeadLettersRequest{}); err != nil || len(letters) != 3 {
		t.Errorf("DeadLetters: %d, %v", len(letters), err)
	}
}

// TestEvidenceThatIsKnown: the same word of Stripe about a payment that nobody has to act on is told once.
func TestEvidenceThatIsKnown(t *testing.T) {
	t.Parallel()
	b := open(t)
	c := b.claim("k")
	held := payments.Transition{Status: payments.StatusRequiresCapture, Object: &payments.PaymentIntent{ID: "pi_1", LatestCharge: "ch_1"}}
	b.record(c, held, 0)
	if again := b.evidence(c, held); again.Sequence != 0 || again.Payment.Sequence != 1 {
		t.Errorf("again: %+v", again)
	}
	canceled := payments.Transition{Status: payments.StatusCanceled, Reason: payments.ReasonStripeCanceled, Object: held.Object}
	if done := b.evidence(c, canceled); done.Sequence != 2 || b.find(c).Status != payments.StatusCanceled {
		t.Errorf("canceled: %+v", done)
	}
}

// TestEvidenceKeepsTheDoubt: giving up a payment while its owner may be sending does not say that nothing was charged.
func TestEvidenceKeepsTheDoubt(t *testing.T) {
	t.Parallel()
	b := open(t)
	for key, s := range map[string]payments.Status{"a": payments.StatusStalled, "b": payments.StatusNeedsReview} {
		c := b.claim(key)
		b.evidence(c, payments.Transition{Status: s, Reason: "by hand"})
		if p := b.find(c); p.Status != s || !p.InDoubt {
			t.Errorf("%s: %+v", s, p)
		}
	}
}

// TestEvidenceTwiceAtOnce: two replays of a stalled payment meet while neither sees a ticket; the second is decided anew on what the first left.
func TestEvidenceTwiceAtOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	c := b.claim("k")
	b.record(c, payments.Transition{Status: payments.StatusStalled, Reason: payments.ReasonNotSent, DeadLetter: payments.ReasonAttemptsExhausted}, 0)
	replay := payments.Transition{Status: payments.StatusWaiting, Reason: "replayed"}

	reached, release := b.hold(b.Store, "evidence")
	var wg sync.WaitGroup
	wg.Go(func() { b.evidence(c, replay) })
	<-reached
	other := b.another(Options{Clock: b.clock})
	var seen []payments.Status
	wg.Go(func() {
		_, err := other.Evidence(ctx, "acme", c.Payment.ID, func(p payments.Payment) (payments.Transition, error) {
			seen = append(seen, p.Status)
			return replay, nil
		})
		if err != nil {
			t.Errorf("Evidence: %v", err)
		}
	})
	b.until("the second waits for a lock", func() bool {
		waits := 0
		if err := b.pool.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waits); err != nil {
			t.Error(err)
			return true // the first must be released in any case
		}
		return waits > 0
	})
	release()
	wg.Wait()
	if len(seen) != 1 || seen[0] != payments.StatusWaiting {
		t.Errorf("the second decided on %v, want waiting", seen)
	}
	got := b.take(payments.TakeRequest{Limit: 5})
	if len(got) != 1 {
		t.Fatalf("%d tickets", len(got))
	}
	b.record(got[0], succeeded(c.Payment), 0)
}
