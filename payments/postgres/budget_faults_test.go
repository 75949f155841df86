package postgres

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// TestDebitedOnce cuts the connection while a token is given, before and after PostgreSQL has got it: a budget is debited once for each token, however
// often the call is repeated.
func TestDebitedOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, action := range actions {
		t.Run("admit "+name, func(t *testing.T) {
			t.Parallel()
			c := openCut(t)
			c.far = c.via(c.farDSN, Options{Clock: c.clock, PoolSize: 1, Rate: 100})
			c.at("commit", action)
			r := c.claiming(intent("acme", "k", 100))
			a, err := c.far.Admit(ctx, r)
			if err != nil || a.Verdict != payments.VerdictClaimed || a.Claim.Token != r.Token {
				t.Fatalf("Admit: %+v, %v", a, err)
			}
			if n := c.tokens(account); n != 4 {
				t.Errorf("%v of 5 tokens are left", n)
			}
			// And by a caller who repeats it.
			if a, err := c.far.Admit(ctx, r); err != nil || a.Verdict != payments.VerdictClaimed {
				t.Errorf("again: %+v, %v", a, err)
			}
			if n := c.tokens(account); n != 4 {
				t.Errorf("again: %v of 5 tokens are left", n)
			}
			c.end(a.Claim, 1)
		})
		t.Run("take "+name, func(t *testing.T) {
			t.Parallel()
			c := openCut(t)
			c.far = c.via(c.farDSN, Options{Clock: c.clock, PoolSize: 1, Rate: 100})
			c.store("acme", "k", payments.LaneInteractive)
			c.at(query("take_paced"), action)
			got, err := c.far.Take(ctx, payments.TakeRequest{Lane: 1, Limit: 1, Lease: time.Minute, Account: account})
			if err != nil || len(got.Claims) > 1 {
				t.Fatalf("Take: %+v, %v", got, err)
			}
			// What the connection that was cut has begun may be committed a moment later.
			c.until("4 of 5 tokens are left", func() bool { return c.tokens(account) == 4 })
			if len(got.Claims) == 0 { // it was committed: nobody has it until the lease is over
				c.clock.Advance(2 * time.Minute)
				if got, err = c.far.Take(ctx, payments.TakeRequest{Lane: 1, Limit: 1, Lease: time.Minute, Account: account}); err != nil || len(got.Claims) != 1 {
					t.Fatalf("Take: %+v, %v", got, err)
				}
			}
			if n := c.tokens(account); n != 4 {
				t.Errorf("then %v of 5 tokens are left", n)
			}
			c.end(got.Claims[0], 1)
		})
	}
}

// TestRolledBackSpendsNothing: a flush that PostgreSQL refuses is repeated item by item, and only what is then stored is paid for.
func TestRolledBackSpendsNothing(t *testing.T) {
	t.Parallel()
	b := paced(t, 100, func(o *Options) { o.Committers = 1 })
	reached, release := b.hold(b.Store, "admit")
	results := make([]error, 4)
	verdicts := make([]payments.Admission, 4)
	done := make(chan int, 4)
	ask := func(i int, amount int64) {
		go func() {
			verdicts[i], results[i] = b.Admit(context.Background(), b.claiming(intent("acme", string(rune('a'+i)), amount)))
			done <- i
		}()
	}
	ask(0, 1)
	<-reached
	ask(1, 1)
	ask(2, -1)
	ask(3, 1)
	b.queued(3)
	release()
	for range 4 {
		<-done
	}
	for i := range 4 {
		if (i == 2) != (results[i] != nil) || i != 2 && verdicts[i].Verdict != payments.VerdictClaimed {
			t.Errorf("item %d: %s, %v", i, verdicts[i].Verdict, results[i])
		}
	}
	if n := b.tokens(account); n != 2 {
		t.Errorf("%v of 5 tokens are left, want 2", n)
	}
}

// TestBudgetThatSomebodyKeepsLocked: as at a prompt. Its account gets no tokens until it is let go; nobody else waits, and what is new is stored.
func TestBudgetThatSomebodyKeepsLocked(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := paced(t, 20) // 2 at once
	b.fill(1, 5, "a", payments.LaneInteractive, "acct_locked")
	b.fill(1, 5, "z", payments.LaneInteractive, "acct_free")
	locked := payments.Account{ID: "acct_locked", Livemode: true}
	b.admit(b.requests(1, "acme", "first", payments.LaneInteractive, locked)[0])
	conn, err := b.pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	prompt, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := prompt.Exec(ctx, "SELECT FROM rate_budgets WHERE account = 'acct_locked' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	// What is new is stored: after a time-out, without a token; the others of the flush wait no longer than it does.
	var wg sync.WaitGroup
	for i, a := range []payments.Account{locked, account} {
		wg.Go(func() {
			r := b.requests(1, "acme", strconv.Itoa(i), payments.LaneInteractive, a)[0]
			got, err := b.Admit(ctx, r)
			for payments.Retryable(err) {
				got, err = b.Admit(ctx, r)
			}
			if err != nil || a == locked && (got.Verdict != payments.VerdictStored || got.Wait < waitMin || got.Wait > time.Second) {
				t.Errorf("Admit on %s: %s, wait %s, %v", a.ID, got.Verdict, got.Wait, err)
			}
		})
	}
	wg.Wait()
	counts := map[string]int{}
	for range 6 { // one at a time: the locked account is met first
		began := time.Now()
		got := b.taking(payments.LaneInteractive, 1)
		if took := time.Since(began); took > 2*time.Second { // which is lock_timeout: as long takes one that waits
			t.Errorf("somebody waited: %s", took)
		}
		for _, c := range got.Claims {
			counts[c.Payment.StripeAccount]++
		}
		if len(got.Claims) == 0 && got.Wait <= 0 {
			t.Error("nothing is given, and nobody is told to wait")
		}
	}
	if counts["acct_free"] != 2 || counts["acct_locked"] != 0 || counts[account.ID] < 1 {
		t.Errorf("given: %v", counts)
	}
	if err := prompt.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(busyPause)
	n := 0
	for _, c := range b.taking(payments.LaneInteractive, 10).Claims {
		if c.Payment.StripeAccount == "acct_locked" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("after the lock: %d", n)
	}
	b.clock.Advance(lockedPause)
	if a := b.admit(b.requests(1, "acme", "last", payments.LaneInteractive, locked)[0]); a.Verdict != payments.VerdictClaimed {
		t.Errorf("long after the lock: %s", a.Verdict)
	}
}
