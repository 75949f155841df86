package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// TestEverybodyIsServed: two processes, both lanes, tenants that share accounts and one whose account is not known, limits and arrivals at random.
// Whoever waits only as long as Take says serves every ticket; at no time has an account given more than its rate allows, and none is idle while
// it could give.
func TestEverybodyIsServed(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0.01, 0.3, 100} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			t.Parallel()
			newEverybody(t, rate).serve()
		})
	}
}

type everybody struct {
	*bench
	rate     float64
	random   *rand.Rand
	tenants  []string
	ways     map[string]payments.Account
	stores   []*Store
	given    map[payments.Account]int
	last     map[payments.Account]time.Time // when the account gave its newest token
	started  time.Time
	admitted int
	settled  int
}

func newEverybody(t *testing.T, rate float64) *everybody {
	e := &everybody{
		bench: paced(t, rate), rate: rate, random: rand.New(rand.NewPCG(5, 5)), tenants: []string{"acme", "globex", "t0", "t1", "t2", "t3", "broken"},
		ways:  map[string]payments.Account{"acme": account, "globex": account},
		given: map[payments.Account]int{}, last: map[payments.Account]time.Time{},
	}
	e.stores = []*Store{e.Store, e.another(Options{Clock: e.clock, Rate: rate, PoolSize: 4})}
	ctx := context.Background()
	for id, name := range map[string]string{"t0": "acct_2", "t1": "acct_2", "t2": "acct_3", "t3": account.ID, "broken": ""} {
		if _, err := e.CreateTenant(ctx, Tenant{ID: id, StripeKeyRef: "file:/keys/" + id}); err != nil {
			t.Fatal(err)
		}
		if name == "" {
			continue
		}
		e.ways[id] = payments.Account{ID: name, Livemode: true}
		if err := e.PinTenantAccount(ctx, id, e.ways[id]); err != nil {
			t.Fatal(err)
		}
	}
	e.started = e.clock.Now()
	return e
}

func (e *everybody) admit(n int) {
	e.t.Helper()
	var list []payments.AdmitRequest
	for range n {
		tenant := e.tenants[e.random.IntN(len(e.tenants))]
		e.admitted++
		r := e.requests(1, tenant, fmt.Sprint("p", e.admitted, "-"), payments.Lane(1+e.random.IntN(2)), e.ways[tenant])[0]
		r.Claim = r.Account.ID != "" && e.random.IntN(4) > 0
		list = append(list, r)
	}
	for _, a := range e.flush(list...) {
		if a.Verdict == payments.VerdictClaimed {
			e.settle(a.Claim)
		}
	}
}

func (e *everybody) settle(c payments.Claim) {
	e.t.Helper()
	a := payments.Account{ID: c.Payment.StripeAccount, Livemode: c.Payment.Livemode}
	if a != e.ways[c.Payment.TenantID] {
		e.t.Fatalf("%s goes to %v", c.Payment.TenantID, a)
	}
	if a.ID != "" {
		e.given[a]++
		e.last[a] = e.clock.Now()
		most := max(2, e.rate/20) + e.rate*e.clock.Now().Sub(e.started).Seconds() + 1e-6
		if float64(e.given[a]) > most {
			e.t.Fatalf("%v has given %d tokens, and may have given %v", a, e.given[a], most)
		}
	}
	e.record(c, succeeded(c.Payment), 0)
	e.settled++
}

// take takes once on each lane and says how long to wait.
func (e *everybody) take() time.Duration {
	e.t.Helper()
	pause := time.Duration(0)
	for _, lane := range []payments.Lane{payments.LaneInteractive, payments.LaneBulk} {
		s := e.stores[e.random.IntN(len(e.stores))]
		got, err := s.Take(context.Background(), payments.TakeRequest{Lane: lane, Limit: 1 + e.random.IntN(8), Lease: time.Hour, Account: account})
		if err != nil {
			e.t.Fatal(err)
		}
		for _, c := range got.Claims {
			e.settle(c)
		}
		if got.Wait > 0 && (pause == 0 || got.Wait < pause) {
			pause = got.Wait
		}
	}
	return pause
}

func (e *everybody) serve() {
	e.t.Helper()
	e.admit(60)
	for n, idle := 0, 0; e.settled < e.admitted; n++ {
		if n < 20 {
			e.admit(2)
		}
		before := e.settled
		pause := e.take()
		if idle++; e.settled > before {
			idle = 0
		} else if e.clock.Advance(pause); idle > 50 {
			e.t.Fatalf("nobody of %d is served any more after %d, and Take says to wait %s", e.admitted, e.settled, pause)
		}
	}
	for a, n := range e.given {
		// All but the first two, or the full bucket, had to come in; a wait is rounded up to waitMin.
		least := time.Duration((float64(n) - max(2, e.rate/20)) / e.rate * float64(time.Second))
		if took := e.last[a].Sub(e.started); took > 2*least+5*time.Second {
			e.t.Errorf("%v: %d took %s, and could have taken %s", a, n, took, least)
		}
	}
}
