package postgres

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oncepay/oncepay/payments"
)

// TestStripesWordStandsAboveWhatIsBeingNamed: a PaymentIntent that somebody is naming at this moment, or was when he died, keeps no payment from the
// outcome that Stripe shows of it, however it comes; whoever names it is refused.
func TestStripesWordStandsAboveWhatIsBeingNamed(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	typed := b.doubtful("acme", "typed")
	asks := b.claim("asks")
	b.record(asks, payments.Transition{Status: payments.StatusRequiresAction}, 0)
	charged := b.claim("charged")
	x := func(c payments.Claim, pi string) payments.Transition {
		adopts := succeeded(c.Payment)
		adopts.Object.ID = pi
		return adopts
	}
	byDecision := payments.Decision{As: payments.StatusSucceeded, PaymentIntent: "pi_x"}
	n, err := b.nameIntent(ctx, "acme", typed.Payment.ID, byDecision)
	if err != nil {
		t.Fatal(err)
	}
	if p := b.record(charged, x(charged, "pi_x"), 0).Payment; p.Status != payments.StatusSucceeded {
		t.Errorf("recorded while a person names it: %s %s", p.Status, p.Reason)
	}
	if _, err := b.resolve(ctx, "acme", typed.Payment.ID, byDecision, ann, n); payments.ErrorCode(err) != payments.CodeInvalid {
		t.Errorf("named, and Stripe has shown it for another: %v", err)
	}
	b.wantTaken("named once more", b.by(typed, "pi_x"), charged.Payment.ID.String())
	if _, err := b.nameIntent(ctx, "acme", typed.Payment.ID, payments.Decision{As: payments.StatusSucceeded, PaymentIntent: "pi_y"}); err != nil {
		t.Fatal(err)
	}
	done, err := b.Evidence(ctx, "acme", asks.Payment.ID, func(payments.Payment) (payments.Transition, error) { return x(asks, "pi_y"), nil })
	if err != nil || done.Payment.Status != payments.StatusSucceeded {
		t.Errorf("shown while a person names it: %s %s, %v", done.Payment.Status, done.Payment.Reason, err)
	}
	if p := b.find(typed); p.Status != payments.StatusUnknown {
		t.Errorf("the other one is %s", p.Status)
	}
}

// TestNamingHoldsNobodyUp: whoever hangs in the middle of recording keeps whoever names a PaymentIntent waiting, and nobody else.
func TestNamingHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	b := open(t)
	a, stuck, other := b.doubtful("acme", "a"), b.claim("stuck"), b.claim("other")
	recorder := b.another(Options{Clock: b.clock})
	reached, release := b.hold(recorder, "record")
	ended := make(chan error, 1)
	go func() {
		_, err := recorder.Record(context.Background(), payments.Recording{Claim: stuck, Transition: succeeded(stuck.Payment), At: b.clock.Now()})
		ended <- err
	}()
	<-reached
	var waits atomic.Bool
	hook := func(verb string) { waits.Store(waits.Load() || verb == "recorders") }
	b.beforeCommit.Store(&hook)
	named := make(chan error, 1)
	go func() { named <- b.by(a, "pi_one") }()
	b.until("whoever names it waits", waits.Load)
	for i := range 5 {
		b.claim("meanwhile-" + strconv.Itoa(i))
	}
	b.record(other, succeeded(other.Payment), 0)
	b.take(payments.TakeRequest{Lane: payments.LaneBulk, Limit: 10})
	if len(named) > 0 {
		t.Errorf("it was named before whoever had begun was done: %v", <-named)
	}
	release()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := <-named; err != nil {
		t.Errorf("a PaymentIntent that is free: %v", err)
	}
}

// TestGivenBackToWhoseItIs alone: a PaymentIntent that Stripe has named first, and then another, is not taken from whoever has it.
func TestGivenBackToWhoseItIs(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	has, asks := b.doubtful("acme", "has"), b.claim("asks")
	disagrees := succeeded(asks.Payment)
	disagrees.Status, disagrees.Object.ID = payments.StatusNeedsReview, "pi_x"
	b.record(asks, disagrees, 0)
	byDecision := payments.Decision{As: payments.StatusSucceeded}
	n, err := b.nameIntent(ctx, "acme", asks.Payment.ID, byDecision)
	if err != nil {
		t.Fatal(err)
	}
	now := disagrees
	now.Object = &payments.PaymentIntent{ID: "pi_y", Status: payments.StripeSucceeded, AmountReceived: 9900}
	if _, err := b.Evidence(ctx, "acme", asks.Payment.ID, func(payments.Payment) (payments.Transition, error) { return now, nil }); err != nil {
		t.Fatal(err)
	}
	if err := b.by(has, "pi_x"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.resolve(ctx, "acme", asks.Payment.ID, byDecision, ann, n); payments.ErrorCode(err) != payments.CodeInvalid {
		t.Errorf("what Stripe has named another PaymentIntent of meanwhile: %v", err)
	}
	if owner, _, err := b.intentOwner(ctx, "pi_x"); err != nil || owner.id != has.Payment.ID {
		t.Errorf("it is %s's now, %v", owner.id, err)
	}
}

// TestNamingAmongRecorders: while many outcomes are recorded, and Stripe's word comes in other ways, too, people name the same PaymentIntents for other
// payments. Whoever is first, each pays for one, and nobody is left without an answer.
func TestNamingAmongRecorders(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	const many = 24
	var typed, recorded, shown [many]payments.Claim
	for i := range many {
		k := strconv.Itoa(i)
		typed[i], recorded[i], shown[i] = b.doubtful("acme", "typed"+k), b.claim("recorded"+k), b.claim("shown"+k)
		b.record(shown[i], payments.Transition{Status: payments.StatusRequiresAction}, 0)
	}
	adopts := func(c payments.Claim, pi string) payments.Transition {
		t := succeeded(c.Payment)
		t.Object.ID = pi
		return t
	}
	var people, others sync.WaitGroup
	for i := range many {
		pi := "pi_" + strconv.Itoa(i)
		people.Go(func() {
			if err := b.by(typed[i], pi); err != nil && payments.ErrorCode(err) != payments.CodeInvalid {
				t.Errorf("a person: %v", err)
			}
		})
		others.Go(func() {
			if i%2 == 0 {
				b.record(recorded[i], adopts(recorded[i], pi), 0)
			} else if _, err := b.Evidence(ctx, "acme", shown[i].Payment.ID, func(payments.Payment) (payments.Transition, error) { return adopts(shown[i], pi), nil }); err != nil {
				t.Errorf("Stripe's word: %v", err)
			}
		})
	}
	people.Wait()
	others.Wait()
	for i := range many {
		other := recorded[i]
		if i%2 == 1 {
			other = shown[i]
		}
		p, q := b.find(typed[i]), b.find(other)
		switch {
		case p.Status == payments.StatusUnknown && q.Status == payments.StatusSucceeded:
		case p.Status == payments.StatusSucceeded && q.Status == payments.StatusNeedsReview && q.InDoubt:
		default:
			t.Errorf("%d: named for one that is %s, and shown for one that is %s %s", i, p.Status, q.Status, q.Reason)
		}
	}
}

// TestTakenAndInReviewAllTheSame: Stripe shows for a payment what a person has given to another one, and that does not agree with what was asked for. Whoever
// decides about it learns both; else one charge would pay for two orders without a word.
func TestTakenAndInReviewAllTheSame(t *testing.T) {
	t.Parallel()
	b := open(t)
	typed, looked, asks, naming := b.doubtful("acme", "typed"), b.claim("looked"), b.claim("asks"), b.doubtful("acme", "naming")
	b.record(asks, payments.Transition{Status: payments.StatusRequiresAction}, 0)
	if err := b.by(typed, "pi_x"); err != nil {
		t.Fatal(err)
	}
	n, err := b.nameIntent(t.Context(), "acme", naming.Payment.ID, payments.Decision{As: payments.StatusSucceeded, PaymentIntent: "pi_y"})
	if err != nil {
		t.Fatal(err)
	}
	disagrees := func(pi string) payments.Transition {
		return payments.Transition{Status: payments.StatusNeedsReview, Reason: payments.ReasonDisagrees + ": amount", InDoubt: true,
			Object: &payments.PaymentIntent{ID: pi, Status: payments.StripeSucceeded, AmountReceived: 1}}
	}
	want := payments.ReasonTaken + ": by " + typed.Payment.ID.String() + "; " + payments.ReasonDisagrees + ": amount"
	if p := b.record(looked, disagrees("pi_x"), 0).Payment; p.Status != payments.StatusNeedsReview || p.Reason != want || !p.InDoubt || p.StripePaymentIntent != "pi_x" {
		t.Errorf("recorded: %s %q, want %q", p.Status, p.Reason, want)
	}
	for range 2 { // the second time tells nothing new
		done, err := b.Evidence(t.Context(), "acme", asks.Payment.ID, func(payments.Payment) (payments.Transition, error) { return disagrees("pi_x"), nil })
		if err != nil || done.Payment.Reason != want || done.Payment.Sequence != 2 {
			t.Errorf("shown: %s %q %d, %v", done.Payment.Status, done.Payment.Reason, done.Payment.Sequence, err)
		}
	}
	other := b.claim("other")
	b.record(other, disagrees("pi_y"), 0)
	if _, err := b.resolve(t.Context(), "acme", naming.Payment.ID, payments.Decision{As: payments.StatusSucceeded, PaymentIntent: "pi_y"}, ann, n); payments.ErrorCode(err) != payments.CodeInvalid {
		t.Errorf("what Stripe has shown for another meanwhile: %v", err)
	}
}
