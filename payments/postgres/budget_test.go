package postgres

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// paced opens a store with a rate, on the test's clock.
func paced(t testing.TB, rate float64, change ...func(*Options)) *bench {
	t.Helper()
	return open(t, append([]func(*Options){func(o *Options) { o.Rate = rate }}, change...)...)
}

// flush sends requests through Admit in one flush, in their order.
func (b *bench) flush(requests ...payments.AdmitRequest) []payments.Admission {
	b.t.Helper()
	batch := make([]*admission, len(requests))
	for i, r := range requests {
		var err error
		if batch[i], _, err = prepare(r); err != nil {
			b.t.Fatal(err)
		}
	}
	results, err := b.flushAdmit(context.Background(), batch)
	if err != nil {
		b.t.Fatal(err)
	}
	admissions := make([]payments.Admission, len(results))
	for i, r := range results {
		if admissions[i] = r.Value; r.Err != nil {
			b.t.Fatal(r.Err)
		}
	}
	return admissions
}

// requests are n new ones of a tenant that want their tickets.
func (b *bench) requests(n int, tenant, prefix string, lane payments.Lane, a payments.Account) []payments.AdmitRequest {
	list := make([]payments.AdmitRequest, n)
	for i := range list {
		list[i] = b.claiming(intent(tenant, prefix+strconv.Itoa(i), 100))
		list[i].Lane, list[i].Account = lane, a
	}
	return list
}

// claimed counts those that got their ticket.
func claimed(list []payments.Admission) (n int) {
	for _, a := range list {
		if a.Verdict == payments.VerdictClaimed {
			n++
		}
	}
	return n
}

// taking takes with all that is said of it.
func (b *bench) taking(lane payments.Lane, limit int) payments.Taking {
	b.t.Helper()
	got, err := b.Take(context.Background(), payments.TakeRequest{Lane: lane, Limit: limit, Lease: time.Hour, Account: account})
	if err != nil {
		b.t.Fatal(err)
	}
	return got
}

// tokens reads what is stored of an account's budget.
func (b *bench) tokens(a payments.Account) (tokens float64) {
	b.t.Helper()
	if err := b.pool.QueryRow(context.Background(), "SELECT tokens FROM rate_budgets WHERE account = $1 AND livemode = $2", a.ID, a.Livemode).Scan(&tokens); err != nil {
		b.t.Fatal(err)
	}
	return tokens
}

func TestAdmitWithinBudget(t *testing.T) {
	t.Parallel()
	b := paced(t, 100) // 5 at once
	got := b.flush(b.requests(8, "acme", "k", payments.LaneInteractive, account)...)
	for i, a := range got {
		want := payments.VerdictClaimed
		if i >= 5 {
			want = payments.VerdictStored
		}
		if a.Verdict != want || (a.Wait != 0) != (i >= 5) {
			t.Errorf("request %d: %s, wait %s; want %s", i, a.Verdict, a.Wait, want)
		}
	}
	if w := got[5].Wait; w != 10*time.Millisecond {
		t.Errorf("wait %s, want 10ms", w)
	}
	if n := b.tokens(account); n != 0 {
		t.Errorf("%v tokens are left", n)
	}
	if taken := b.taking(payments.LaneInteractive, 10); len(taken.Claims) != 0 || taken.Wait != 10*time.Millisecond {
		t.Errorf("Take: %+v", taken)
	}
	b.clock.Advance(21 * time.Millisecond)
	if taken := b.taking(payments.LaneInteractive, 10); len(taken.Claims) != 2 || taken.Wait != 9*time.Millisecond {
		t.Errorf("Take: %d, %s", len(taken.Claims), taken.Wait)
	}
	b.clock.Advance(10 * time.Millisecond)
	if taken := b.taking(payments.LaneInteractive, 10); len(taken.Claims) != 1 || taken.Wait != 0 {
		t.Errorf("Take: %d, %s", len(taken.Claims), taken.Wait)
	}
	if taken := b.taking(payments.LaneInteractive, 10); len(taken.Claims) != 0 || taken.Wait != 0 {
		t.Errorf("Take: %d, %s", len(taken.Claims), taken.Wait)
	}
}
