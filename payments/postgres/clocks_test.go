package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// TestClocksApart: a claim whose send was dated by a clock that is wrong must not be sent, since it would be looked for where it is not. Whatever
// gives a lease says so.
func TestClocksApart(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := open(t)
	for _, apart := range []time.Duration{-2 * time.Hour, -3 * time.Minute, -time.Minute, time.Minute, 3 * time.Minute, 2 * time.Hour} {
		s := b.another(Options{Clock: b.clock})
		s.opts.wall = func() time.Time { return b.clock.Now().Add(apart) }
		wrong := apart.Abs() > 2*time.Minute
		judge := func(verb string, c payments.Claim, err error) {
			t.Helper()
			if err != nil || wrong != !c.LeaseUntil.After(s.wall()) {
				t.Errorf("%s, %s apart: a lease until %s at %s, %v", verb, apart, c.LeaseUntil, s.wall(), err)
			}
		}
		a, err := s.Admit(ctx, b.claiming(intent("acme", "order"+apart.String(), 100)))
		judge("Admit", a.Claim, err)
		c, err := s.Extend(ctx, a.Claim, time.Minute, false)
		judge("Extend", c, err)
		b.clock.Advance(time.Hour)
		taken, err := s.Take(ctx, payments.TakeRequest{Lane: payments.LaneInteractive, Limit: 1, Lease: time.Minute, Account: b.claiming(intent("acme", "any", 1)).Account})
		if len(taken.Claims) != 1 {
			t.Fatalf("%d taken", len(taken.Claims))
		}
		judge("Take", taken.Claims[0], err)
		b.record(taken.Claims[0], unknown("looking_up"), 24*time.Hour)
	}
}

// TestAbandonedDoesNotOverflow: a ticket that was abandoned as often as can be counted is given out like any other.
func TestAbandonedDoesNotOverflow(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.claim("order-1")
	if _, err := b.pool.Exec(context.Background(), "UPDATE queue SET abandoned = 32767"); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(time.Hour)
	if c := b.take(payments.TakeRequest{Lane: payments.LaneInteractive, Limit: 1, Lease: time.Minute, Alone: true}); len(c) != 1 || c[0].Abandoned < payments.AbandonedMax {
		t.Errorf("%+v", c)
	}
}
