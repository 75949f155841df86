package postgres

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// TestTakeAlone: after crashes, tickets that must be worked on alone are given one by one, to those who ask for them, and hide nobody else.
func TestTakeAlone(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0, 1000} {
		t.Run(strconv.FormatFloat(rate, 'f', -1, 64), func(t *testing.T) {
			t.Parallel()
			b := open(t, func(o *Options) { o.Rate = rate })
			const lonely = 60
			for i := range lonely {
				b.store("acme", "lonely"+strconv.Itoa(i), payments.LaneInteractive)
			}
			// Half of them have an owner, whose end will count.
			if _, err := b.pool.Exec(context.Background(), `UPDATE queue SET abandoned = 2 + (payment_id >= '\x80')::int,
				token = CASE WHEN payment_id < '\x80' THEN substr(sha256(payment_id), 1, 16) END`); err != nil {
				t.Fatal(err)
			}
			b.clock.Advance(time.Minute)
			b.store("acme", "healthy", payments.LaneInteractive)
			b.store("globex", "bulk", payments.LaneBulk)
			r := payments.TakeRequest{Lane: payments.LaneInteractive, Limit: 50, Lease: time.Minute, Account: account}
			taken, err := b.Take(context.Background(), r)
			if err != nil || !taken.Alone || len(taken.Claims) != 1 || taken.Claims[0].Payment.IdempotencyKey != "healthy" {
				t.Fatalf("a Take gives %+v, %v", taken, err)
			}
			if r.Lane = payments.LaneBulk; true {
				taken, err := b.Take(context.Background(), r)
				if err != nil || taken.Alone || len(taken.Claims) != 1 {
					t.Fatalf("a Take of the other lane gives %+v, %v", taken, err)
				}
			}
			r.Lane, r.Alone = payments.LaneInteractive, true
			var got []string
			for range lonely {
				b.clock.Advance(time.Second)
				taken, err := b.Take(context.Background(), r)
				if err != nil || len(taken.Claims) != 1 || taken.Claims[0].Abandoned != payments.AbandonedAlone || taken.Alone != (len(got) < lonely-1) {
					t.Fatalf("after %d: %+v, %v", len(got), taken, err)
				}
				got = append(got, taken.Claims[0].Payment.IdempotencyKey)
				b.record(taken.Claims[0], succeeded(taken.Claims[0].Payment), 0)
			}
			slices.Sort(got)
			if got = slices.Compact(got); len(got) != lonely {
				t.Errorf("%d of %d were given", len(got), lonely)
			}
			if taken, err := b.Take(context.Background(), r); err != nil || len(taken.Claims) != 0 || taken.Alone {
				t.Errorf("none is left: %+v, %v", taken, err)
			}
		})
	}
}
