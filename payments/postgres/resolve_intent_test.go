package postgres

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// doubtful is a payment that is being looked up, and that nobody has at the moment.
func (b *bench) doubtful(tenant, key string) payments.Claim {
	b.t.Helper()
	c := b.admit(b.claiming(intent(tenant, key, 9900))).Claim
	b.record(c, unknown(payments.ReasonLookingUp), 0)
	return c
}

// by resolves a payment as succeeded by a PaymentIntent.
func (b *bench) by(c payments.Claim, pi string) error {
	_, err := b.Resolve(context.Background(), c.Payment.TenantID, c.Payment.ID, payments.Decision{As: payments.StatusSucceeded, PaymentIntent: pi}, ann)
	return err
}

// wantTaken checks that a PaymentIntent was refused, and that the refusal names the payment that has it, or none.
func (b *bench) wantTaken(what string, err error, names string) {
	b.t.Helper()
	var e *payments.Error
	if !errors.As(err, &e) || e.Code != payments.CodeInvalid || e.Field != "payment_intent" || !strings.Contains(e.Message, names) || names == "another tenant" && strings.Contains(e.Message, "pay_") {
		b.t.Errorf("%s: %v; want a refusal that names %s", what, err, names)
	}
}

func (b *bench) exec(sql string, args ...any) {
	b.t.Helper()
	if _, err := b.pool.Exec(context.Background(), sql, args...); err != nil {
		b.t.Fatal(err)
	}
}

// TestOnePaymentIntentPaysForOnePayment: a person's slip of the pen does not settle two orders by one charge.
func TestOnePaymentIntentPaysForOnePayment(t *testing.T) {
	t.Parallel()
	b := open(t)
	charged := b.claim("charged")
	pi := b.record(charged, succeeded(charged.Payment), 0).Payment.StripePaymentIntent
	a, other := b.doubtful("acme", "a"), b.doubtful("globex", "a")
	b.wantTaken("what was charged for another payment", b.by(a, pi), charged.Payment.ID.String())
	b.wantTaken("what was charged for another tenant's", b.by(other, pi), "another tenant")
	listed := payments.NewID("globex", "gone")
	b.exec(`INSERT INTO stripe_objects (tenant_id, payment_id, stripe_payment_intent, stripe_account, livemode, created_at, found_at) VALUES ('globex', $1, 'pi_listed', 'acct_1', true, now(), now())`, listed[:])
	b.wantTaken("what Stripe says is of another", b.by(other, "pi_listed"), listed.String())
	if p := b.find(a); p.Status != payments.StatusUnknown {
		t.Fatalf("a refused payment is %s", p.Status)
	}
	if err := b.by(a, "pi_a"); err != nil {
		t.Fatal(err)
	}
	b.wantTaken("what a person has named for another", b.by(b.doubtful("acme", "b"), "pi_a"), a.Payment.ID.String())
	b.wantTaken("what a person has named for another tenant's", b.by(other, "pi_a"), "another tenant")
	b.wantTaken("what nobody has named", b.by(other, ""), "")
	if err := b.by(other, "pi_other"); err != nil {
		t.Errorf("one that is free, after others that are not: %v", err)
	}
	var kept int
	if err := b.pool.QueryRow(t.Context(), "SELECT count(*) FROM resolved_intents").Scan(&kept); err != nil || kept != 2 {
		t.Errorf("%d are kept, %v; want the two that payments succeeded by", kept, err)
	}
}

// TestTwoPeopleNameOnePaymentIntent at the same time: one of them is refused.
func TestTwoPeopleNameOnePaymentIntent(t *testing.T) {
	t.Parallel()
	b := open(t)
	list := []payments.Claim{b.doubtful("acme", "a"), b.doubtful("acme", "b"), b.doubtful("globex", "a"), b.doubtful("acme", "c")}
	var done atomic.Int32
	var wg sync.WaitGroup
	for _, c := range list {
		wg.Go(func() {
			if err := b.by(c, "pi_one"); err == nil {
				done.Add(1)
			} else {
				b.wantTaken("the slower one", err, "")
			}
		})
	}
	wg.Wait()
	var succeeded int
	for _, c := range list {
		if p := b.find(c); p.Status == payments.StatusSucceeded {
			succeeded++
		}
	}
	if done.Load() != 1 || succeeded != 1 {
		t.Errorf("%d were told, %d payments succeeded; want one", done.Load(), succeeded)
	}
}

// TestNamingWaitsForWhoeverRecords: an outcome that is being recorded while a person names its PaymentIntent is seen.
func TestNamingWaitsForWhoeverRecords(t *testing.T) {
	t.Parallel()
	b := open(t)
	a, other := b.doubtful("acme", "a"), b.claim("other")
	recorder := b.another(Options{Clock: b.clock})
	reached, release := b.hold(recorder, "record")
	waits, goOn := b.hold(b.Store, "recorders")
	var both sync.WaitGroup
	both.Go(func() {
		adopts := succeeded(other.Payment)
		adopts.Object.ID = "pi_one"
		if done, err := recorder.Record(context.Background(), payments.Recording{Claim: other, Transition: adopts, At: b.clock.Now()}); err != nil || done.Payment.Status != payments.StatusSucceeded {
			t.Errorf("whoever came first: %s, %v", done.Payment.Status, err)
		}
	})
	<-reached // it has seen that nobody has named any
	named := make(chan error, 1)
	both.Go(func() { named <- b.by(a, "pi_one") })
	select {
	case <-waits:
	case err := <-named:
		t.Fatalf("it was named before whoever had begun was done: %v", err)
	}
	release()
	goOn()
	both.Wait()
	b.wantTaken("what is just being recorded", <-named, other.Payment.ID.String())
}

// TestAdoptingWhatAPersonHasGivenAway: Stripe's records then show a PaymentIntent for another payment than a person has. That one waits for a person,
// and others beside it are recorded.
func TestAdoptingWhatAPersonHasGivenAway(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	typed := b.doubtful("acme", "typed")
	looked, foreign := b.doubtful("acme", "looked"), b.doubtful("globex", "looked")
	asks := b.claim("asks")
	b.record(asks, payments.Transition{Status: payments.StatusRequiresAction}, 0)
	ended := b.claim("ended")
	b.record(ended, payments.Transition{Status: payments.StatusFailed}, 0)
	if err := b.by(typed, "pi_x"); err != nil {
		t.Fatal(err)
	}
	owned := map[payments.ID]payments.Claim{}
	for range 2 { // one of each tenant in turn
		for _, c := range b.take(payments.TakeRequest{Limit: 10}) {
			owned[c.Payment.ID] = c
		}
	}
	bystander := b.claim("bystander")
	x := func(c payments.Claim) payments.Transition {
		adopts := succeeded(c.Payment)
		adopts.Object.ID = "pi_x"
		return adopts
	}
	var wg sync.WaitGroup
	wg.Go(func() { b.record(bystander, succeeded(bystander.Payment), 0) })
	for _, c := range []payments.Claim{looked, foreign} {
		mine, ok := owned[c.Payment.ID]
		if !ok {
			t.Fatalf("%s was not taken", c.Payment.ID)
		}
		wg.Go(func() { b.record(mine, x(c), 0) })
	}
	wg.Wait()
	for what, want := range map[*payments.Claim]string{&looked: payments.ReasonTaken + ": by " + typed.Payment.ID.String(), &foreign: payments.ReasonTaken} {
		p := b.find(*what)
		if p.Status != payments.StatusNeedsReview || p.Reason != want || !p.InDoubt || p.StripePaymentIntent != "pi_x" {
			t.Errorf("%s of %s: %s %q, %s", p.IdempotencyKey, p.TenantID, p.Status, p.Reason, p.StripePaymentIntent)
		}
	}
	if p := b.find(bystander); p.Status != payments.StatusSucceeded {
		t.Errorf("beside it: %s", p.Status)
	}
	evidence := func(c payments.Claim) (payments.Recorded, error) {
		return b.Evidence(ctx, c.Payment.TenantID, c.Payment.ID, func(payments.Payment) (payments.Transition, error) { return x(c), nil })
	}
	if done, err := evidence(asks); err != nil || done.Payment.Status != payments.StatusNeedsReview || !strings.HasPrefix(done.Payment.Reason, payments.ReasonTaken) {
		t.Errorf("by evidence: %+v, %v", done.Payment, err)
	}
	if _, err := evidence(ended); !errors.Is(err, payments.ErrTaken) || b.find(ended).Status != payments.StatusFailed {
		t.Errorf("of one that has ended: %v", err)
	}
	// Its metadata say that it is of the payment that was looked up: a person may say so, and then nobody else gets it.
	if err := b.by(looked, ""); err != nil || b.find(looked).Status != payments.StatusSucceeded {
		t.Errorf("Stripe's word and a person's: %v", err)
	}
	b.wantTaken("what has gone back to whose it is", b.by(b.doubtful("acme", "third"), "pi_x"), looked.Payment.ID.String())
}

// TestWhatWasNamedInVainLapses: a process that died between naming and resolving holds nobody up for long.
func TestWhatWasNamedInVainLapses(t *testing.T) {
	t.Parallel()
	b := open(t)
	dead := payments.NewID("acme", "dead")
	b.exec(`INSERT INTO resolved_intents (stripe_payment_intent, tenant_id, payment_id, named_at, provisional_until) VALUES ('pi_one', 'acme', $1, $2, $2::timestamptz + interval '15 min')`, dead[:], b.clock.Now())
	a, looked := b.doubtful("acme", "a"), b.claim("looked")
	b.wantTaken("what somebody else is naming", b.by(a, "pi_one"), "at this moment")
	b.clock.Advance(15*time.Minute + time.Second)
	adopts := succeeded(looked.Payment)
	adopts.Object.ID = "pi_one"
	if p := b.record(looked, adopts, 0).Payment; p.Status != payments.StatusSucceeded {
		t.Errorf("what nobody is naming any more: %s %s", p.Status, p.Reason)
	}
	b.wantTaken("what was recorded meanwhile", b.by(a, "pi_one"), looked.Payment.ID.String())
	if err := b.by(a, "pi_two"); err != nil {
		t.Error(err)
	}
}
