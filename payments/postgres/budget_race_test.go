package postgres

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// grants are the tokens of one call, which were given at some time between its begin and its end.
type grants struct {
	from, to time.Time
	n        int
}

// tally collects grants.
type tally struct {
	mu   sync.Mutex
	list []grants
}

func (l *tally) add(from time.Time, n int) {
	to := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if n > 0 {
		l.list = append(l.list, grants{from, to, n})
	}
}

func (l *tally) total() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.list {
		n += g.n
	}
	return n
}

// worst is by how many the tokens that were certainly given within any stretch of time exceed what may be given within it.
func (l *tally) worst(burst, rate float64) float64 {
	byEnd := slices.SortedFunc(slices.Values(l.list), func(a, b grants) int { return a.to.Compare(b.to) })
	worst := math.Inf(-1)
	for _, first := range l.list {
		n := 0
		for _, g := range byEnd {
			if !g.from.Before(first.from) {
				n += g.n
				worst = max(worst, float64(n)-burst-rate*g.to.Sub(first.from).Seconds())
			}
		}
	}
	return worst
}

// caller is one loop of a process: it asks, and asks again when it was told to.
type caller struct {
	ask  func() (n int, wait time.Duration, err error)
	next time.Time
}

// callers are those of a process that admits and takes, in both lanes.
func (b *bench) callers(s *Store, name string) []*caller {
	ctx := context.Background()
	n := 0
	list := []*caller{{ask: func() (int, time.Duration, error) {
		n++
		a, err := s.Admit(ctx, b.claiming(intent("acme", fmt.Sprint(name, "-", n), 1)))
		switch {
		case a.Verdict == payments.VerdictClaimed:
			return 1, 30 * time.Millisecond, err
		case err == nil && a.Wait <= 0:
			return 0, 0, fmt.Errorf("%s without a wait", a.Verdict)
		}
		return 0, max(a.Wait, 30*time.Millisecond), err
	}}}
	for _, lane := range []payments.Lane{payments.LaneInteractive, payments.LaneBulk} {
		list = append(list, &caller{ask: func() (int, time.Duration, error) {
			got, err := s.Take(ctx, payments.TakeRequest{Lane: lane, Limit: 16, Lease: time.Hour, Account: account})
			if len(got.Claims) == 0 && got.Wait == 0 {
				got.Wait = 50 * time.Millisecond // nothing is due: it polls
			}
			return len(got.Claims), got.Wait, err
		}})
	}
	return list
}

// TestBudgetIsUsedUp: eight processes that ask at the same times, and meet each other at the budget, get all of the rate together.
func TestBudgetIsUsedUp(t *testing.T) {
	t.Parallel()
	const rate, step, steps = 200.0, 10 * time.Millisecond, 100
	b := paced(t, rate)
	b.fill(3, 40, "backlog", payments.LaneInteractive, "")
	b.fill(3, 200, "backlog", payments.LaneBulk, "")
	var all []*caller
	for i := range 8 {
		all = append(all, b.callers(b.another(Options{Clock: b.clock, Rate: rate, PoolSize: 4}), strconv.Itoa(i))...)
	}
	var mu sync.Mutex
	total := 0
	for i := range steps {
		var wg sync.WaitGroup
		for _, c := range all {
			if b.clock.Now().Before(c.next) {
				continue
			}
			wg.Go(func() {
				n, wait, err := c.ask()
				if err != nil {
					t.Error(err)
				}
				c.next = b.clock.Now().Add(wait)
				mu.Lock()
				defer mu.Unlock()
				total += n
			})
		}
		wg.Wait()
		if most := rate/20 + rate*(time.Duration(i)*step).Seconds(); float64(total) > most+0.001 {
			t.Fatalf("%d tokens after %s, of %v", total, time.Duration(i)*step, most)
		}
		b.clock.Advance(step)
	}
	if want := rate * ((steps - 1) * step).Seconds(); float64(total) < 0.97*want {
		t.Errorf("%d tokens, want at least 97%% of %v", total, want)
	}
}

// TestBudgetExactly: the same on PostgreSQL's own clock. Not one token more than the rate allows is given in any stretch of time. How much of the
// rate is used is TestBudgetIsUsedUp's to tell, which does not depend on a machine that does other things too; here it is told where the machine lets
// callers come when they were told to.
func TestBudgetExactly(t *testing.T) {
	t.Parallel()
	const rate, seconds, inTime = 200.0, 3, 2
	b := open(t, func(o *Options) { o.Clock, o.Rate = nil, rate })
	b.fill(3, 200, "backlog", payments.LaneInteractive, "")
	b.fill(3, 400, "backlog", payments.LaneBulk, "")
	var all tally
	var wg sync.WaitGroup
	var callers []*caller
	for i := range 8 {
		callers = append(callers, b.callers(b.another(Options{Rate: rate, PoolSize: 4}), strconv.Itoa(i))...)
	}
	for range 2 { // connections and plans are made
		for _, c := range callers {
			wg.Go(func() { _, _, _ = c.ask() })
		}
		wg.Wait()
	}
	deadline := time.Now().Add(seconds * time.Second)
	var told, took atomic.Int64 // how long callers were to wait, and how long they were away
	for _, c := range callers {
		wg.Go(func() {
			for time.Now().Before(deadline) {
				from := time.Now()
				n, wait, err := c.ask()
				if err != nil {
					t.Error(err)
					return
				}
				all.add(from, n)
				timer := time.NewTimer(wait)
				<-timer.C
				told.Add(int64(wait))
				took.Add(int64(time.Since(from)))
			}
		})
	}
	wg.Wait()
	late := float64(took.Load()) / float64(told.Load())
	got, want := float64(all.total()), rate*seconds
	t.Logf("%v tokens of %v; callers came back after %.2f times what they were told; %.2f at most beside the bound", got, want, late, all.worst(max(2, rate/20), rate))
	if over := all.worst(max(2, rate/20), rate); over > 0.5 { // the clocks have a resolution
		t.Errorf("%.2f tokens more than the rate allows", over)
	}
	if late < inTime && got < 0.75*want || got == 0 {
		t.Errorf("%v tokens of %v", got, want)
	}
}

// TestBudgetNoDeadlock: all verbs at once, on few payments of several accounts and tenants, with a budget that is always short. Nobody waits in a circle.
func TestBudgetNoDeadlock(t *testing.T) {
	t.Parallel()
	const rate = 300.0
	b := open(t, func(o *Options) { o.Clock, o.Rate = nil, rate })
	ctx := context.Background()
	accounts := map[string]payments.Account{"acme": account, "globex": account}
	for i := range 3 {
		id := "own" + strconv.Itoa(i)
		accounts[id] = payments.Account{ID: "acct_" + strconv.Itoa(i%2)}
		if _, err := b.CreateTenant(ctx, Tenant{ID: id, StripeAccount: accounts[id].ID}); err != nil {
			t.Fatal(err)
		}
		if err := b.PinTenantAccount(ctx, id, accounts[id]); err != nil {
			t.Fatal(err)
		}
	}
	const enough = 40
	var wg sync.WaitGroup
	var given tally
	began := time.Now()
	goesOn := func() bool { // 2 s, or on a slow machine until it shows something
		past := time.Since(began)
		return past < 2*time.Second || past < time.Minute && given.total() < enough
	}
	settle := func(s *Store, c payments.Claim) {
		var err error
		switch c.Token[0] % 5 {
		case 0:
			_, err = s.Record(ctx, payments.Recording{Claim: c, Transition: waiting(payments.ReasonRateLimited)})
			_ = s.Throttle(ctx, accounts[c.Payment.TenantID])
		case 1:
			_, err = s.Evidence(ctx, c.Payment.TenantID, c.Payment.ID, func(p payments.Payment) (payments.Transition, error) { return succeeded(p), nil })
		case 2:
			_, err = s.Extend(ctx, c, time.Millisecond, true) // and vanishes
		case 3:
			err = s.BuryPayment(ctx, c, payments.DeadLetter{Reason: payments.ReasonWorkerKilled}, 0)
		default:
			_, err = s.Record(ctx, payments.Recording{Claim: c, Transition: succeeded(c.Payment)})
		}
		if err != nil && !payments.TicketLost(err) {
			t.Errorf("settling: %v", err)
		}
	}
	for range 4 {
		s := b.another(Options{Rate: rate, PoolSize: 8, Committers: 2})
		for worker := range 6 {
			wg.Go(func() {
				for n := worker; goesOn(); n++ {
					if worker < 4 {
						tenant := []string{"acme", "globex", "own0", "own1", "own2"}[n%5]
						r := b.claiming(intent(tenant, "k"+strconv.Itoa(n), 1)) // the same keys in all of them
						r.Account, r.Lane = accounts[tenant], payments.Lane(1+n%2)
						a, err := s.Admit(ctx, r)
						if err != nil {
							t.Errorf("Admit: %v", err)
						}
						if a.Verdict == payments.VerdictClaimed {
							given.add(time.Now(), 1)
							settle(s, a.Claim)
						}
						continue
					}
					got, err := s.Take(ctx, payments.TakeRequest{Lane: payments.Lane(1 + n%2), Limit: 8, Lease: 50 * time.Millisecond, Account: account})
					if err != nil {
						t.Errorf("Take: %v", err)
					}
					for _, c := range got.Claims {
						if want := accounts[c.Payment.TenantID]; c.Payment.StripeAccount != want.ID || c.Payment.Livemode != want.Livemode {
							t.Errorf("a payment of %s goes to %s", c.Payment.TenantID, c.Payment.StripeAccount)
						}
						given.add(time.Now(), 1)
						settle(s, c)
					}
				}
			})
		}
	}
	wg.Wait()
	var deadlocks int
	if err := b.pool.QueryRow(ctx, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&deadlocks); err != nil || deadlocks > 0 {
		t.Errorf("%d deadlocks, %v", deadlocks, err)
	}
	if n := given.total(); n < enough {
		t.Errorf("only %d tokens were given: this shows nothing", n)
	}
}
