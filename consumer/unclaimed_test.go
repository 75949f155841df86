package consumer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// lateClock is behind PostgreSQL's, as far as is allowed.
type lateClock struct{}

func (lateClock) Now() time.Time { return time.Now().Add(-payments.ClockMargin) }

// A ticket that waits for budget counts until somebody has it, whatever the worker's clock says: else a lane would go on pulling, and move its
// backlog from the stream into the table. One that another process has taken counts no more, also when it waits for its second try.
func TestATicketCountsUntilItIsTaken(t *testing.T) {
	t.Parallel()
	for name, clock := range map[string]payments.Clock{"right": systemClock{}, "late": lateClock{}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, func(c *Config) { c.Clock = clock })
				d := r.due(payments.LaneInteractive)
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { d.doubt(ctx); close(done) }()
				id := r.store.insert(testIntent("k"), payments.LaneInteractive, 0)
				d.unclaimed.add("acme", id, true)
				time.Sleep(10 * doubtEvery)
				if d.unclaimed.pulledNow() != 1 {
					t.Error("a ticket that waits counts no more")
				}
				got, err := r.store.Take(ctx, payments.TakeRequest{Lane: payments.LaneInteractive, Limit: 1, Lease: time.Minute})
				if err != nil || len(got.Claims) != 1 {
					t.Fatal(len(got.Claims), err)
				}
				if _, err := r.store.Record(ctx, payments.Recording{
					Claim: got.Claims[0], Transition: payments.Transition{Status: payments.StatusWaiting, Reason: payments.ReasonRateLimited},
				}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(3 * doubtEvery)
				if n := d.unclaimed.pulledNow(); n != 0 {
					t.Errorf("%d that were taken count still", n)
				}
				stop()
				<-done
			})
		})
	}
}
