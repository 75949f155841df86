package postgres

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

func (b *bench) store(tenant, key string, lane payments.Lane) {
	b.t.Helper()
	if a := b.admit(payments.AdmitRequest{Intent: intent(tenant, key, 100), Lane: lane}); a.Verdict != payments.VerdictStored {
		b.t.Fatalf("Admit of %s: %s", key, a.Verdict)
	}
}

func TestTakeSetsWhatASendNeeds(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.store("acme", "k", payments.LaneInteractive)
	b.clock.Advance(time.Minute)
	c := b.take(payments.TakeRequest{Limit: 5})[0]
	if c.Payment.InDoubt || !c.Payment.FirstSubmitAt.IsZero() || c.Payment.StripeAccount != account.ID || !c.Payment.Livemode {
		t.Errorf("the claim: %+v", c.Payment)
	}
	if p := b.find(c); !p.InDoubt || !p.FirstSubmitAt.Equal(b.clock.Now()) || !p.LastSubmitAt.Equal(b.clock.Now()) || p.StripeAccount != account.ID || !p.Livemode || !p.Owned {
		t.Errorf("stored: %+v", p)
	}
	first := b.clock.Now()

	// Its owner vanishes. The next one finds the send in doubt, and sets none of its times.
	b.clock.Advance(2 * time.Minute)
	c = b.take(payments.TakeRequest{Limit: 5})[0]
	if !c.Payment.InDoubt || c.Abandoned != 1 || !c.Payment.FirstSubmitAt.Equal(first) || !c.WindowStart().Equal(first) {
		t.Errorf("after a crash: %+v", c)
	}
	if p := b.find(c); !p.FirstSubmitAt.Equal(first) || !p.LastSubmitAt.Equal(first) {
		t.Errorf("a take that must look set a time: %+v", p)
	}

	// A definite answer that nothing was executed: the next take is a send of its own; the time of the first stays.
	b.record(c, waiting(payments.ReasonRateLimited), 0)
	second := b.take(payments.TakeRequest{Limit: 5})[0]
	if second.Payment.InDoubt || second.Abandoned != 0 || !second.Payment.FirstSubmitAt.Equal(first) || !second.WindowStart().Equal(b.clock.Now()) {
		t.Errorf("after a definite answer: %+v", second)
	}
	if p := b.find(c); !p.InDoubt || !p.FirstSubmitAt.Equal(b.clock.Now()) || !p.LastSubmitAt.Equal(b.clock.Now()) {
		t.Errorf("stored: %+v", p)
	}

	// Pending and unknown ones are asked about, not sent.
	b.record(second, payments.Transition{Status: payments.StatusPending, Reason: payments.ReasonProcessing, Object: succeeded(second.Payment).Object}, 0)
	before := b.find(c)
	b.clock.Advance(time.Second)
	third := b.take(payments.TakeRequest{Limit: 5})[0]
	if p := b.find(c); p.InDoubt || !p.LastSubmitAt.Equal(before.LastSubmitAt) || p.Status != payments.StatusPending {
		t.Errorf("a pending payment: %+v", p)
	}
	b.record(third, unknown(payments.ReasonLookingUp), 0)
	b.clock.Advance(time.Second)
	b.take(payments.TakeRequest{Limit: 5})
	if p := b.find(c); !p.LastSubmitAt.Equal(before.LastSubmitAt) || !p.InDoubt {
		t.Errorf("an unknown payment: %+v", p)
	}
}

func TestTakeKeepsAForeignAccount(t *testing.T) {
	t.Parallel()
	b := open(t)
	c := b.claim("k")
	b.record(c, waiting(payments.ReasonNotSent), 0)
	taking, err := b.Take(context.Background(), payments.TakeRequest{Lane: 1, Limit: 1, Lease: time.Minute, Account: payments.Account{ID: "acct_other"}})
	got := taking.Claims
	if err != nil || len(got) != 1 || got[0].Payment.StripeAccount != account.ID || !got[0].Payment.Livemode {
		t.Fatalf("Take: %+v, %v", got, err)
	}
	if p := b.find(c); p.StripeAccount != account.ID || !p.Livemode {
		t.Errorf("the pin was moved: %+v", p)
	}
}

func TestTakeLanesAndDueTimes(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.store("acme", "bulk", payments.LaneBulk)
	b.store("acme", "a", payments.LaneInteractive)
	b.clock.Advance(time.Second)
	b.store("acme", "b", payments.LaneInteractive)
	var keys []string
	for _, c := range b.take(payments.TakeRequest{Limit: 5}) {
		keys = append(keys, c.Payment.IdempotencyKey)
	}
	if !slices.Equal(keys, []string{"a", "b"}) {
		t.Errorf("interactive: %v, want the oldest first and no bulk", keys)
	}
	if got := b.take(payments.TakeRequest{Limit: 5, Lane: payments.LaneBulk}); len(got) != 1 || got[0].Lane != payments.LaneBulk || got[0].Payment.Lane != payments.LaneBulk {
		t.Errorf("bulk: %+v", got)
	}
	if got := b.take(payments.TakeRequest{Limit: 0}); got != nil {
		t.Errorf("limit 0: %+v", got)
	}
}

// TestTakeTenantsInTurn: a tenant with few payments does not wait behind one with many that came first, whatever the size of a take.
func TestTakeTenantsInTurn(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 2, 3, 7} {
		t.Run(strconv.Itoa(limit), func(t *testing.T) {
			t.Parallel()
			b := open(t)
			for _, tenant := range []string{"initech", "umbrella"} {
				if _, err := b.CreateTenant(context.Background(), Tenant{ID: tenant}); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 40 {
				b.store("initech", "k"+strconv.Itoa(i), payments.LaneInteractive)
			}
			b.clock.Advance(time.Second)
			for _, tenant := range []string{"acme", "globex", "umbrella"} {
				for i := range 3 {
					b.store(tenant, "k"+strconv.Itoa(i), payments.LaneInteractive)
				}
			}
			var order []string
			for len(order) < 12 {
				got := b.take(payments.TakeRequest{Limit: min(limit, 12-len(order))})
				if len(got) == 0 {
					t.Fatal("nothing taken")
				}
				for _, c := range got {
					order = append(order, c.Payment.TenantID)
				}
			}
			for _, tenant := range []string{"acme", "globex", "umbrella"} {
				n := 0
				for _, o := range order {
					if o == tenant {
						n++
					}
				}
				if n < 2 {
					t.Errorf("%s got %d of the first 12: %v", tenant, n, order)
				}
			}
		})
	}
}

// TestTakeRace: many takers share the tickets; nobody gets one that another has.
func TestTakeRace(t *testing.T) {
	t.Parallel()
	b := open(t)
	const n = 300
	for i := range n {
		b.store([]string{"acme", "globex"}[i%2], "k"+strconv.Itoa(i), payments.LaneInteractive)
	}
	stores := []*Store{b.Store, b.another(Options{Clock: b.clock}), b.another(Options{Clock: b.clock})}
	var mu sync.Mutex
	owners := map[key]int{}
	var wg sync.WaitGroup
	for i := range 9 {
		wg.Go(func() {
			for empty := 0; empty < 3; {
				taking, err := stores[i%3].Take(context.Background(), payments.TakeRequest{Lane: 1, Limit: 7, Lease: time.Minute, Account: account})
				if err != nil {
					t.Errorf("Take: %v", err)
					return
				}
				got := taking.Claims
				if len(got) == 0 {
					empty++
				}
				mu.Lock()
				for _, c := range got {
					owners[claimKey(&c)]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for k, times := range owners {
		if times != 1 {
			t.Errorf("%v was given out %d times", k, times)
		}
	}
	// What two takers wanted at once may be left for the next.
	if left := len(b.take(payments.TakeRequest{Limit: 1000})); len(owners)+left != n {
		t.Errorf("%d given out and %d left, want %d", len(owners), left, n)
	}
}

// TestTakeManyTenants: with more tenants than a take gives out, all are served once before any is served twice.
func TestTakeManyTenants(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	for _, sql := range []string{
		"INSERT INTO tenants (id, created_at) SELECT 't' || n, now() FROM generate_series(1, 300) n",
		`INSERT INTO payments (created_at, updated_at, amount, lane, request_version, fingerprint_version, off_session, id, fingerprint, tenant_id,
			idempotency_key, kind, status, currency, capture_method)
			SELECT now(), now(), 1, 1, 1, 1, true, decode(md5(t || '/' || n), 'hex'), sha256('x'), 't' || t, 'k' || n, 'charge', 'received', 'usd', 'automatic'
			FROM generate_series(1, 300) t, generate_series(1, 3) n`,
		"INSERT INTO queue (due_at, lane, payment_id, tenant_id) SELECT '2029-01-01'::timestamptz + random() * interval '300 days', 1, id, tenant_id FROM payments",
	} {
		if _, err := b.pool.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	served := map[string]int{}
	for round := 1; round <= 3; round++ {
		for taken := 0; taken < 300; {
			got := b.take(payments.TakeRequest{Limit: min(64, 300-taken)})
			if len(got) == 0 {
				t.Fatalf("round %d: nothing after %d", round, taken)
			}
			taken += len(got)
			for _, c := range got {
				if served[c.Payment.TenantID]++; served[c.Payment.TenantID] > round {
					t.Fatalf("round %d: %s is served before others", round, c.Payment.TenantID)
				}
			}
		}
	}
	if got := b.take(payments.TakeRequest{Limit: 10}); len(got) != 0 {
		t.Errorf("%d are left", len(got))
	}
}

// TestTakeBesideALockedPayment: a payment that somebody keeps locked, as at a prompt, is passed over, and does not hold up the lane.
func TestTakeBesideALockedPayment(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := open(t)
	claims := b.claims(5)
	b.clock.Advance(time.Hour)
	conn, err := b.pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	prompt, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := prompt.Exec(ctx, "SELECT FROM payments WHERE id = $1 FOR UPDATE", claims[2].Payment.ID[:]); err != nil {
		t.Fatal(err)
	}
	all := payments.TakeRequest{Lane: payments.LaneInteractive, Limit: 10, Lease: time.Minute, Account: account}
	for _, c := range b.take(all) {
		if c.Payment.ID == claims[2].Payment.ID {
			t.Error("a locked payment was given out")
		}
		b.record(c, succeeded(c.Payment), 0)
	}
	if n, err := b.TicketCount(ctx); n != 1 || err != nil {
		t.Errorf("%d tickets are left, %v; want that of the locked payment", n, err)
	}
	if err := prompt.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if got := b.take(all); len(got) != 1 || got[0].Payment.ID != claims[2].Payment.ID {
		t.Errorf("after the lock: %+v", got)
	}
}
