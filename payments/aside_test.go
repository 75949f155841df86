package payments

import (
	"context"
	"slices"
	"testing"
	"time"
)

// awayOf is where the bench's owners step aside to.
type awayOf struct {
	*bench
	leave func()
}

func (a awayOf) Leave() {
	a.note("leave")
	a.leave()
}

func (a awayOf) Return(context.Context) bool {
	a.note("return")
	return true
}

// A process that ends while an owner stands aside says nothing of that owner's payment, neither for nor against it: the next owner counts as this one
// did, so that of several payments that end their process none is cleared by another. The first two counts are left alone, since they mean nothing.
func TestADeathAsideChangesNoCount(t *testing.T) {
	t.Parallel()
	for count := range AbandonedMax {
		b := newBench()
		c := testClaim(StatusUnknown, true)
		c.Abandoned = count
		ticket, aside := count, -1
		b.extend = func(next Claim, _ bool) (Claim, error) {
			ticket = next.Abandoned
			return next, nil
		}
		b.look = func(Payment, func() error) Observation {
			return Observation{Kind: ObservedRecords, Account: testAccount, Found: []PaymentIntent{*charged()}}
		}
		b.Aside = awayOf{b, func() { aside = ticket }}
		s := b.Settle(t.Context(), t.Context(), c)
		want := count
		if count < AbandonedAlone-1 {
			want = count + 1
		}
		if s.Err != nil || aside+1 != want || ticket != count || len(b.recorded) != 1 {
			t.Errorf("%d: the next owner would count %d, want %d; back inside %d; %v", count, aside+1, want, ticket, s.Err)
		}
	}
}

// What is left of a lease when the records are read can be no more than a call's time; who waits for a place then must not lose its ticket.
func TestALeaseOutlastsTheWayBack(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]bool{time.Second: true, 15 * time.Second: false} {
		b := newBench()
		b.look = func(Payment, func() error) Observation {
			b.now = testNow.Add(45*time.Second - left)
			return Observation{Kind: ObservedRecords, Account: testAccount, Found: []PaymentIntent{*charged()}}
		}
		b.Aside = awayOf{b, func() {}}
		s := b.Settle(t.Context(), t.Context(), testClaim(StatusUnknown, true))
		back := slices.Index(b.calls, "return")
		if s.Err != nil || back < 1 || (b.calls[back-1] == "extend") != want {
			t.Errorf("with %v left: %v, %v", left, b.calls, s.Err)
		}
	}
}
