package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// hold stops every commit of the verb until the returned function is called; reached is closed when the first one stands there.
func (b *bench) hold(s *Store, verb string) (reached <-chan struct{}, release func()) {
	there, gate := make(chan struct{}), make(chan struct{})
	var once, open sync.Once
	hook := func(v string) {
		if v == verb {
			once.Do(func() { close(there) })
			<-gate
		}
	}
	s.beforeCommit.Store(&hook)
	release = func() {
		open.Do(func() {
			s.beforeCommit.Store(nil)
			close(gate)
		})
	}
	b.t.Cleanup(release)
	return there, release
}

func TestAdmitVerdicts(t *testing.T) {
	t.Parallel()
	b := open(t)
	invalid := &payments.ValidationError{Reason: payments.ReasonInvalid}
	claimed := b.claim("there")
	if a := b.admit(payments.AdmitRequest{Intent: intent("acme", "unclaimed", 5), Lane: payments.LaneBulk}); a.Verdict != payments.VerdictStored ||
		a.Payment.Owned || a.Payment.InDoubt || a.Payment.StripeAccount != "" || !a.Payment.NextAttemptAt.Equal(b.clock.Now()) {
		t.Errorf("unclaimed: %+v", a)
	}
	with := func(key string, amount int64, change func(*payments.AdmitRequest)) payments.AdmitRequest {
		r := b.claiming(intent("acme", key, amount))
		if change != nil {
			change(&r)
		}
		return r
	}
	refused := func(r *payments.AdmitRequest) { r.Refused = invalid }
	existing := func(r *payments.AdmitRequest) { r.ExistingOnly = true }
	stranger := func(r *payments.AdmitRequest) { r.Intent.TenantID = "nobody" }
	for name, c := range map[string]struct {
		r    payments.AdmitRequest
		want payments.Verdict
	}{
		"repeat":                   {with("there", 9900, nil), payments.VerdictExists},
		"repeat, currency in caps": {with("there", 9900, func(r *payments.AdmitRequest) { r.Intent.Currency = "USD" }), payments.VerdictExists},
		"other expiry":             {with("there", 9900, func(r *payments.AdmitRequest) { r.Intent.ExpiresAt = b.clock.Now() }), payments.VerdictExists},
		"other amount":             {with("there", 9901, nil), payments.VerdictConflict},
		"invalid, row agrees":      {with("there", 9900, refused), payments.VerdictRefused},
		"invalid, row differs":     {with("there", 1, refused), payments.VerdictConflict},
		"invalid, no row":          {with("new-1", 1, refused), payments.VerdictRefused},
		"invalid key":              {with("\x00", 1, refused), payments.VerdictRefused},
		"existing only":            {with("there", 9900, existing), payments.VerdictExists},
		"existing only, differs":   {with("there", 1, existing), payments.VerdictConflict},
		"existing only, no row":    {with("new-2", 1, existing), payments.VerdictAbsent},
		"no tenant":                {with("there", 9900, stranger), payments.VerdictTenantUnknown},
		"same key, other tenant": {with("there", 7, func(r *payments.AdmitRequest) {
			r.Intent.TenantID = "globex"
		}), payments.VerdictClaimed},
	} {
		a := b.admit(c.r)
		if a.Verdict != c.want {
			t.Errorf("%s: %s, want %s", name, a.Verdict, c.want)
		}
		if c.want == payments.VerdictExists && (a.Payment.ID != claimed.Payment.ID || !a.Payment.Owned) {
			t.Errorf("%s: the row is not returned: %+v", name, a.Payment)
		}
		if c.want == payments.VerdictConflict && !slices.Equal(a.Differs, []string{"amount"}) {
			t.Errorf("%s: differs in %v, want amount", name, a.Differs)
		}
	}
	for _, key := range []string{"new-1", "new-2"} {
		if _, err := b.FindByKey(context.Background(), "acme", key); payments.ErrorCode(err) != payments.CodeNotFound {
			t.Errorf("%s was stored: %v", key, err)
		}
	}
	// A tenant that was unknown a moment ago exists as soon as it is there.
	if _, err := b.pool.Exec(context.Background(), "INSERT INTO tenants (id, created_at) VALUES ('nobody', now())"); err != nil {
		t.Fatal(err)
	}
	if a := b.admit(with("there", 9900, stranger)); a.Verdict != payments.VerdictClaimed {
		t.Errorf("a new tenant: %s", a.Verdict)
	}
}

func TestAdmitRefusesWhatSQLCannotKeep(t *testing.T) {
	t.Parallel()
	b := open(t)
	for name, change := range map[string]func(*payments.Intent){
		"NUL in the description":   func(i *payments.Intent) { i.Description = "a\x00b" },
		"NUL in metadata":          func(i *payments.Intent) { i.Metadata = map[string]string{"a": "\x00"} },
		"NUL in a metadata name":   func(i *payments.Intent) { i.Metadata = map[string]string{"\x00": "a"} },
		"surrogate in customer":    func(i *payments.Intent) { i.Customer = "\xed\xa0\x80" },
		"NUL in the key":           func(i *payments.Intent) { i.IdempotencyKey = "\x00" },
		"no tenant":                func(i *payments.Intent) { i.TenantID = "" },
		"negative amount":          func(i *payments.Intent) { i.Amount = -1 },
		"a kind that no table has": func(i *payments.Intent) { i.Kind = "gift" },
	} {
		i := intent("acme", "bad", 1)
		change(&i)
		_, err := b.Admit(context.Background(), b.claiming(i))
		if payments.ErrorCode(err) != payments.CodeInvalid {
			t.Errorf("%s: %v, want %s", name, err, payments.CodeInvalid)
		}
		if err != nil && strings.Contains(err.Error(), "\x00") {
			t.Errorf("%s: the error repeats the value: %q", name, err)
		}
	}
	if _, err := b.Admit(context.Background(), payments.AdmitRequest{Intent: intent("acme", "k", 1), Lane: 1, Claim: true}); payments.ErrorCode(err) != payments.CodeInvalid {
		t.Errorf("a claim without a token: %v", err)
	}
}

// TestAdmitBadNeighbour: an item that PostgreSQL refuses takes none of its flush with it.
func TestAdmitBadNeighbour(t *testing.T) {
	t.Parallel()
	b := open(t, func(o *Options) { o.Committers = 1 })
	reached, release := b.hold(b.Store, "admit")
	var wg sync.WaitGroup
	wg.Go(func() { b.admit(b.claiming(intent("acme", "first", 1))) })
	<-reached
	errs := make([]error, 5)
	for i := range errs {
		in := intent("acme", "k"+strconv.Itoa(i), 1)
		if i == 2 {
			in.Amount = -1
		}
		wg.Go(func() { _, errs[i] = b.Admit(context.Background(), b.claiming(in)) })
	}
	b.queued(len(errs))
	release()
	wg.Wait()
	for i, err := range errs {
		if (i == 2) != (payments.ErrorCode(err) == payments.CodeInvalid) || i != 2 && err != nil {
			t.Errorf("item %d: %v", i, err)
		}
	}
}

// queued waits until n requests wait for the next flush of Admit.
func (b *bench) queued(n int) {
	b.t.Helper()
	b.until(fmt.Sprint(n, " queued requests"), func() bool { return b.admits.Len() >= n })
}

// TestAdmitEqualKeysInOneFlush: of two requests under one key in the same flush one owns it, and one that asks for another amount is a conflict.
func TestAdmitEqualKeysInOneFlush(t *testing.T) {
	t.Parallel()
	b := open(t, func(o *Options) { o.Committers = 1 })
	reached, release := b.hold(b.Store, "admit")
	var wg sync.WaitGroup
	wg.Go(func() { b.admit(b.claiming(intent("acme", "first", 1))) })
	<-reached
	requests := []payments.AdmitRequest{
		b.claiming(intent("acme", "order-1", 100)), b.claiming(intent("acme", "order-1", 999)), b.claiming(intent("acme", "order-1", 100)),
		{Intent: intent("acme", "order-1", 100), Lane: payments.LaneInteractive},
	}
	verdicts := make([]payments.Admission, len(requests))
	for i, r := range requests {
		wg.Go(func() { verdicts[i] = b.admit(r) })
		b.queued(i + 1)
	}
	release()
	wg.Wait()
	want := []payments.Verdict{payments.VerdictClaimed, payments.VerdictConflict, payments.VerdictExists, payments.VerdictExists}
	for i, a := range verdicts {
		if a.Verdict != want[i] || a.Payment.Amount != 100 {
			t.Errorf("request %d: %s on %d, want %s on 100", i, a.Verdict, a.Payment.Amount, want[i])
		}
	}
}

// TestAdmitWinnerHeldOpen: 50 callers of three processes meet a key whose winner has not committed yet.
func TestAdmitWinnerHeldOpen(t *testing.T) {
	t.Parallel()
	b := open(t)
	reached, release := b.hold(b.Store, "admit")
	admissions := make([]payments.Admission, 50)
	var wg sync.WaitGroup
	wg.Go(func() { admissions[0] = b.admit(b.claiming(intent("acme", "order-1", 100))) })
	<-reached
	stores := []*Store{b.another(Options{Clock: b.clock, PoolSize: 4}), b.another(Options{Clock: b.clock, PoolSize: 4})}
	for i := 1; i < len(admissions); i++ {
		wg.Go(func() {
			var err error
			if admissions[i], err = stores[i%2].Admit(context.Background(), b.claiming(intent("acme", "order-1", 100))); err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
		})
	}
	timer := time.NewTimer(300 * time.Millisecond) // the time for which the fault was seen
	<-timer.C
	release()
	wg.Wait()
	owners := 0
	for i, a := range admissions {
		switch a.Verdict {
		case payments.VerdictClaimed:
			owners++
		case payments.VerdictExists:
		default:
			t.Errorf("caller %d: %q", i, a.Verdict)
		}
		if a.Payment.ID != payments.NewID("acme", "order-1") {
			t.Errorf("caller %d got another row", i)
		}
	}
	if owners != 1 {
		t.Errorf("%d owners, want 1", owners)
	}
}

// TestAdmitOverlapping: two processes admit the same hundred keys in opposite orders, twenty times; nobody sees a deadlock.
func TestAdmitOverlapping(t *testing.T) {
	t.Parallel()
	b := open(t)
	stores := []*Store{b.another(Options{Clock: b.clock, PoolSize: 4}), b.another(Options{Clock: b.clock, PoolSize: 4})}
	for round := range 20 {
		var claimed, exists, other [2]int
		var wg sync.WaitGroup
		for side, s := range stores {
			requests := make([]*admission, 100)
			for i := range requests {
				n := i
				if side == 1 {
					n = len(requests) - 1 - i
				}
				a, _, err := prepare(b.claiming(intent("acme", "r"+strconv.Itoa(round)+"-"+strconv.Itoa(n), 100)))
				if err != nil {
					t.Fatal(err)
				}
				requests[i] = a
			}
			wg.Go(func() {
				for _, r := range s.admits.DoAll(context.Background(), requests) {
					switch {
					case r.Err != nil:
						t.Errorf("round %d: %v", round, r.Err)
					case r.Value.Verdict == payments.VerdictClaimed:
						claimed[side]++
					case r.Value.Verdict == payments.VerdictExists:
						exists[side]++
					default:
						other[side]++
					}
				}
			})
		}
		wg.Wait()
		if claimed[0]+claimed[1] != 100 || exists[0]+exists[1] != 100 || other != [2]int{} {
			t.Errorf("round %d: claimed %v, exists %v, other %v", round, claimed, exists, other)
		}
	}
}

// TestAdmitAgain: the same request with the same token reads its token back, and its lease is never longer than the ticket.
func TestAdmitAgain(t *testing.T) {
	t.Parallel()
	b := open(t)
	r := b.claiming(intent("acme", "order-1", 100))
	first := b.admit(r).Claim
	b.clock.Advance(20 * time.Second)
	again := b.admit(r)
	if again.Verdict != payments.VerdictClaimed || again.Claim.Token != r.Token {
		t.Fatalf("the second time: %+v", again)
	}
	if !again.Claim.LeaseUntil.Equal(first.LeaseUntil) || !again.Claim.ClaimedAt.Equal(first.ClaimedAt) || again.Claim.Payment.InDoubt {
		t.Errorf("the second claim is not the first one:\n%+v\n%+v", again.Claim, first)
	}
	b.record(again.Claim, succeeded(again.Payment), 0)
	if a := b.admit(r); a.Verdict != payments.VerdictExists || a.Payment.Status != payments.StatusSucceeded {
		t.Errorf("after the end: %s %s", a.Verdict, a.Payment.Status)
	}
}

// TestRank goes through everything that a request can meet.
func TestRank(t *testing.T) {
	t.Parallel()
	for bits := range 1 << 7 {
		has := func(i int) bool { return bits>>i&1 == 1 }
		m := meeting{has(0), has(1), has(2), has(3), has(4), has(5), has(6)}
		if (m.owner || m.inserted) && (!m.rowThere || m.refused || m.existingOnly) {
			continue // cannot be
		}
		got := rank(m)
		switch {
		case m.tenantUnknown:
			check(t, m, got, payments.VerdictTenantUnknown)
		case m.rowThere && !m.sameRequest:
			check(t, m, got, payments.VerdictConflict)
		case m.refused:
			check(t, m, got, payments.VerdictRefused)
		case !m.rowThere:
			check(t, m, got, payments.VerdictAbsent)
		case !m.owner && !m.inserted:
			check(t, m, got, payments.VerdictExists)
		case m.owner:
			check(t, m, got, payments.VerdictClaimed)
		default:
			check(t, m, got, payments.VerdictStored)
		}
	}
}

func check(t *testing.T, m meeting, got, want payments.Verdict) {
	t.Helper()
	if got != want {
		t.Errorf("%+v: %s, want %s", m, got, want)
	}
}
