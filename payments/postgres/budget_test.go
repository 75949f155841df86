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
		if admissions[i] = *r.Value; r.Err != nil {
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
	b := paced(t, 20) // 2 at once
	got := b.flush(b.requests(6, "acme", "k", payments.LaneInteractive, account)...)
	for i, a := range got {
		want := payments.VerdictClaimed
		if i >= 2 {
			want = payments.VerdictStored
		}
		if a.Verdict != want || (a.Wait != 0) != (i >= 2) {
			t.Errorf("request %d: %s, wait %s; want %s", i, a.Verdict, a.Wait, want)
		}
		if p := a.Payment; (a.Verdict == payments.VerdictClaimed) != p.InDoubt || p.InDoubt != (p.StripeAccount == account.ID) || p.Owned != p.InDoubt || p.Livemode != p.InDoubt {
			t.Errorf("request %d: %+v", i, p)
		}
		if stored := b.find(payments.Claim{Payment: a.Payment}); stored.InDoubt != a.Payment.InDoubt || stored.StripeAccount != a.Payment.StripeAccount ||
			!stored.FirstSubmitAt.Equal(a.Payment.FirstSubmitAt) || stored.Owned != a.Payment.Owned || !stored.NextAttemptAt.Equal(a.Payment.NextAttemptAt) {
			t.Errorf("request %d is told %+v, stored is %+v", i, a.Payment, stored)
		}
	}
	if w := got[3].Wait; w != 50*time.Millisecond {
		t.Errorf("wait %s, want 50ms", w)
	}
	if n := b.tokens(account); n != 0 {
		t.Errorf("%v tokens are left", n)
	}
	want := func(limit, n int, wait time.Duration) {
		t.Helper()
		taken := b.taking(payments.LaneInteractive, limit)
		if len(taken.Claims) != n || taken.Wait != wait {
			t.Errorf("Take: %d, wait %s; want %d, %s", len(taken.Claims), taken.Wait, n, wait)
		}
	}
	want(10, 0, 50*time.Millisecond)
	b.clock.Advance(51 * time.Millisecond)
	want(10, 1, 49*time.Millisecond)
	b.clock.Advance(99 * time.Millisecond) // nothing is lost by rounding: 3 tokens in 150 ms
	want(1, 1, 0)                          // for want of a higher limit
	want(10, 1, waitMin+30*time.Millisecond)
	b.clock.Advance(49 * time.Millisecond)
	want(10, 0, waitMin)
	b.clock.Advance(time.Millisecond)
	want(10, 1, 0)
	want(10, 0, 0)
}

// TestBudgetOrder: in one flush interactive requests come first, each lane in the order of arrival, not of the keys.
func TestBudgetOrder(t *testing.T) {
	t.Parallel()
	b := paced(t, 60) // 3 at once
	var list []payments.AdmitRequest
	for _, r := range []struct {
		key  string
		lane payments.Lane
	}{{"c", payments.LaneBulk}, {"b", payments.LaneBulk}, {"a", payments.LaneBulk}, {"z", payments.LaneInteractive}, {"y", payments.LaneInteractive}} {
		one := b.claiming(intent("acme", r.key, 100))
		one.Lane = r.lane
		list = append(list, one)
	}
	got := b.flush(list...)
	for i, want := range []payments.Verdict{payments.VerdictClaimed, payments.VerdictStored, payments.VerdictStored, payments.VerdictClaimed, payments.VerdictClaimed} {
		if got[i].Verdict != want {
			t.Errorf("%s: %s, want %s", list[i].Intent.IdempotencyKey, got[i].Verdict, want)
		}
	}
}

// TestDuplicatesSpendNothing: whatever does not insert a row with a token costs nothing, and leaves the room to those behind it in its flush.
func TestDuplicatesSpendNothing(t *testing.T) {
	t.Parallel()
	b := paced(t, 200) // 10 at once
	settled := b.requests(5, "acme", "k", payments.LaneInteractive, account)
	for _, a := range b.flush(settled...) {
		b.record(a.Claim, succeeded(a.Payment), 0)
	}
	if n := b.tokens(account); n != 5 {
		t.Fatalf("%v tokens after 5 of 10", n)
	}
	for range 10 {
		var repeats []payments.AdmitRequest
		for i := range 500 {
			repeats = append(repeats, b.claiming(intent("acme", "k"+strconv.Itoa(i%5), 100)))
		}
		if n := claimed(b.flush(repeats...)); n != 0 {
			t.Fatalf("%d repeats were claimed", n)
		}
	}
	if n := b.tokens(account); n != 5 {
		t.Errorf("%v tokens after 5,000 repeats, want 5", n)
	}
	mixed := b.requests(6, "acme", "new", payments.LaneInteractive, account)
	other := b.claiming(intent("acme", "k0", 999)) // a conflict
	refused := b.claiming(intent("acme", "refused", 1))
	refused.Refused = &payments.ValidationError{Reason: payments.ReasonInvalid}
	absent := b.claiming(intent("acme", "absent", 1))
	absent.ExistingOnly = true
	unclaimed := b.claiming(intent("acme", "unclaimed", 1))
	unclaimed.Claim = false
	stranger := b.claiming(intent("nobody", "k", 1))
	got := b.flush(append([]payments.AdmitRequest{settled[0], settled[1], settled[2], other, refused, absent, unclaimed, stranger}, mixed...)...)
	for i, want := range []payments.Verdict{
		payments.VerdictExists, payments.VerdictExists, payments.VerdictExists, payments.VerdictConflict, payments.VerdictRefused, payments.VerdictAbsent,
		payments.VerdictStored, payments.VerdictTenantUnknown, payments.VerdictClaimed, payments.VerdictClaimed, payments.VerdictClaimed, payments.VerdictClaimed,
		payments.VerdictClaimed, payments.VerdictStored,
	} {
		if got[i].Verdict != want || (got[i].Wait > 0) != (i == 13) {
			t.Errorf("request %d: %s, wait %s, want %s", i, got[i].Verdict, got[i].Wait, want)
		}
	}
	if n := b.tokens(account); n != 0 {
		t.Errorf("%v tokens are left", n)
	}
	// The same keys twice in a flush are one.
	b.clock.Advance(time.Minute)
	twice := b.requests(4, "globex", "k", payments.LaneBulk, account)
	if n := claimed(b.flush(append(twice, twice...)...)); n != 8 { // the same token: both are told that it is theirs
		t.Errorf("%d of 4 twice were claimed", n)
	}
	if n := b.tokens(account); n != 6 {
		t.Errorf("%v tokens are left, want 6", n)
	}
}

// TestBudgetClock: a bucket that was written by a clock which was wrong fills again, and what comes in is neither lost nor counted twice.
func TestBudgetClock(t *testing.T) {
	t.Parallel()
	b := paced(t, 100)
	n := 0
	got := func() int {
		n++
		return claimed(b.flush(b.requests(20, "acme", "r"+strconv.Itoa(n)+"-", payments.LaneInteractive, account)...))
	}
	if first := got(); first != 5 {
		t.Errorf("%d at first", first)
	}
	if list := b.taking(payments.LaneInteractive, 1); len(list.Claims) != 0 {
		t.Error("a token too many")
	}
	b.budgets.empty = nil // another process asks
	b.clock.Advance(-time.Second)
	if again := got(); again != 0 {
		t.Errorf("a second back: %d", again)
	}
	b.budgets.empty = nil
	b.clock.Advance(-time.Hour)
	if again := got(); again != 0 {
		t.Errorf("an hour back: %d", again)
	}
	b.budgets.empty = nil
	b.clock.Advance(20 * time.Millisecond)
	// What waits comes first; of the upper half of the bucket new requests may have some.
	if taken := b.taking(payments.LaneInteractive, 5); len(taken.Claims) != 2 {
		t.Errorf("20 ms later: %d", len(taken.Claims))
	}
}

// TestMarkOfWrongClock: an empty bucket and its mark that tickets wait, both written by a clock which was ahead, do not keep what is due waiting for
// that clock's time, also when nothing new comes.
func TestMarkOfWrongClock(t *testing.T) {
	t.Parallel()
	for _, lane := range []payments.Lane{payments.LaneInteractive, payments.LaneBulk} {
		for _, ahead := range []time.Duration{10 * time.Second, time.Minute, 100 * 365 * 24 * time.Hour} {
			b := paced(t, 100)
			b.clock.Advance(ahead)
			b.flush(b.requests(20, "acme", "ahead", lane, account)...)
			b.clock.Advance(-ahead)
			for _, r := range b.requests(3, "acme", "now", lane, account) {
				r.Claim = false // as of a tenant whose account is not known yet
				b.admit(r)
			}
			b.taking(lane, 5)
			b.clock.Advance(100 * time.Millisecond)
			if got := b.taking(lane, 5); len(got.Claims) != 3 {
				t.Errorf("%s, %s ahead: %d of 3 taken", lane, ahead, len(got.Claims))
			}
		}
	}
}

// TestBudgetIsMissing: a budget that somebody has deleted is a full one.
func TestBudgetIsMissing(t *testing.T) {
	t.Parallel()
	b := paced(t, 100)
	b.flush(b.requests(10, "acme", "a", payments.LaneInteractive, account)...)
	drop := func() {
		t.Helper()
		if _, err := b.pool.Exec(context.Background(), "DELETE FROM rate_budgets"); err != nil {
			t.Fatal(err)
		}
	}
	drop()
	if taken := b.taking(payments.LaneInteractive, 10); len(taken.Claims) != 5 {
		t.Errorf("Take: %d", len(taken.Claims))
	}
	drop()
	b.clock.Advance(time.Minute)
	if got := b.flush(b.requests(10, "acme", "b", payments.LaneInteractive, account)...); claimed(got) != 0 || got[0].Wait != waitMin {
		t.Errorf("Admit: %d, wait %s", claimed(got), got[0].Wait)
	}
	b.clock.Advance(waitMin)
	if got := b.flush(b.requests(10, "acme", "c", payments.LaneInteractive, account)...); claimed(got) != 5 {
		t.Errorf("Admit: %d", claimed(got))
	}
}
