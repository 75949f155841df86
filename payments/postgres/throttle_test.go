package postgres

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// rate is how many tokens come in each second now, as every process sees it.
func (b *bench) rate(a payments.Account) (rate float64) {
	b.t.Helper()
	var id string
	var livemode, waits bool
	var tokens float64
	err := b.pool.QueryRow(context.Background(), query("budgets"), []string{a.ID}, []bool{a.Livemode}, b.now(), b.opts.Rate).Scan(&id, &livemode, &tokens, &rate, &waits)
	if err != nil {
		b.t.Fatal(err)
	}
	return rate
}

func (b *bench) throttle(s *Store, a payments.Account) {
	b.t.Helper()
	if err := s.Throttle(context.Background(), a); err != nil {
		b.t.Errorf("Throttle: %v", err)
	}
}

// TestThrottle: 429s halve the rate once a second whoever is told of them, and it grows back to the setting in a straight line.
func TestThrottle(t *testing.T) {
	t.Parallel()
	b := paced(t, 400)
	other := b.another(Options{Clock: b.clock, Rate: 400})
	want := func(when string, rate float64) {
		t.Helper()
		if got := b.rate(account); math.Abs(got-rate) > 0.01 {
			t.Errorf("%s: %v a second, want %v", when, got, rate)
		}
	}
	var wg sync.WaitGroup
	for i := range 500 {
		wg.Go(func() { b.throttle([]*Store{b.Store, other}[i%2], account) })
	}
	wg.Wait()
	want("500 in one moment", 200)
	b.clock.Advance(999 * time.Millisecond)
	third := b.another(Options{Clock: b.clock, Rate: 400}) // it has said nothing yet
	b.throttle(third, account)
	want("within a second", 200+200*0.999/30)
	b.clock.Advance(time.Millisecond)
	b.throttle(b.Store, account)
	want("a second later", (200+200/30.)/2)
	b.clock.Advance(15 * time.Second)
	want("half the way back", 400-(400-(200+200/30.)/2)/2)
	b.clock.Advance(16 * time.Second)
	want("31 s after the last", 400)
	for range 12 {
		b.throttle(b.Store, account)
		b.clock.Advance(time.Second)
	}
	if got := b.rate(account); got < 25 || got > 26 { // where what comes back in a second is as much as a 429 takes
		t.Errorf("after twelve in a row: %v a second", got)
	}
	// The smaller rate is what is given, and it holds no more than its share in the bucket.
	b.fill(1, 300, "shop", payments.LaneInteractive, "")
	b.throttle(b.Store, account)
	b.taking(payments.LaneInteractive, 64)
	n := 0
	for range 20 {
		b.clock.Advance(50 * time.Millisecond)
		n += len(b.taking(payments.LaneInteractive, 64).Claims)
	}
	if n < 17 || n > 22 {
		t.Errorf("%d in a second at a rate that grows from 13 to 26", n)
	}
	b.clock.Advance(time.Minute)
	if n := len(b.taking(payments.LaneInteractive, 64).Claims); n != 20 {
		t.Errorf("%d once it has recovered, want a full bucket", n)
	}
	want("at last", 400)
	// A 429 that a clock far ahead has dated holds nothing down.
	b.throttle(b.Store, account)
	b.clock.Advance(-time.Hour)
	want("an hour back", 400)
	b.throttle(b.Store, account)
	want("said again", 200)
}

// TestThrottleLeavesAlone: other accounts, rates of one a second and less, and processes without a rate.
func TestThrottleLeavesAlone(t *testing.T) {
	t.Parallel()
	b := paced(t, 100)
	b.admit(b.claiming(intent("acme", "k", 1)))
	b.throttle(b.Store, payments.Account{ID: account.ID, Livemode: false})
	b.throttle(b.Store, payments.Account{ID: "acct_2", Livemode: true})
	b.throttle(b.Store, payments.Account{})
	if got := b.rate(account); got != 100 {
		t.Errorf("another account's 429: %v a second", got)
	}
	if err := b.Throttle(context.Background(), payments.Account{ID: "\x00"}); payments.ErrorCode(err) != payments.CodeInvalid {
		t.Errorf("an account that cannot be stored: %v", err)
	}
	free := b.another(Options{Clock: b.clock})
	b.throttle(free, account)
	if got := b.rate(account); got != 100 {
		t.Errorf("a process without a rate: %v a second", got)
	}
	slow := &bench{Store: b.another(Options{Clock: b.clock, Rate: 0.5}), t: t, clock: b.clock}
	slow.throttle(slow.Store, payments.Account{ID: "acct_slow"})
	if got := slow.rate(payments.Account{ID: "acct_slow"}); got != 0.5 {
		t.Errorf("one in two seconds became %v a second", got)
	}
	low := &bench{Store: b.another(Options{Clock: b.clock, Rate: 1.5}), t: t, clock: b.clock}
	for range 3 {
		low.throttle(low.Store, payments.Account{ID: "acct_low"})
		if got := low.rate(payments.Account{ID: "acct_low"}); got != 1 {
			t.Errorf("three in two seconds became %v a second, want 1", got)
		}
		b.clock.Advance(30*time.Second + 1)
		if got := low.rate(payments.Account{ID: "acct_low"}); got != 1.5 {
			t.Errorf("30 s later: %v a second", got)
		}
	}
	for _, rate := range []float64{-1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		if got := (Options{Rate: rate}).withDefaults().Rate; got != 0 {
			t.Errorf("a rate of %v became %v", rate, got)
		}
	}
}

// TestThrottleAway: what could not be said is said the next time.
func TestThrottleAway(t *testing.T) {
	t.Parallel()
	c := openCut(t)
	far := c.via(c.farDSN, Options{Clock: c.clock, PoolSize: 1, Rate: 100})
	near := &bench{Store: c.another(Options{Clock: c.clock, Rate: 100}), t: t, clock: c.clock}
	near.admit(near.claiming(intent("acme", "k", 1)))
	c.proxy.Cut()
	if err := far.Throttle(context.Background(), account); !payments.Retryable(err) {
		t.Errorf("PostgreSQL is away: %v", err)
	}
	c.proxy.Heal()
	c.throttle(far, account)
	if got := near.rate(account); got != 50 {
		t.Errorf("%v a second", got)
	}
}

// TestThrottleSilence: a PostgreSQL that does not answer keeps nobody from recording what Stripe said.
func TestThrottleSilence(t *testing.T) {
	t.Parallel()
	b := paced(t, 100)
	s := b.another(Options{Clock: b.clock, Rate: 100, PoolSize: 1})
	only, err := s.pool.Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	patience, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := s.Throttle(patience, account); !payments.Retryable(err) || patience.Err() != nil {
		t.Errorf("PostgreSQL is silent: %v", err)
	}
	only.Release()
	b.throttle(s, account)
	if got := b.rate(account); got != 50 {
		t.Errorf("said again: %v a second", got)
	}
}
