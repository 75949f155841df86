package crashtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// The whole rate is used and never exceeded, whoever shares it, and no more is in flight than the rate and the calls' time ask for. The backlog
// stays in the stream.
func TestRateIsUsedAndKept(t *testing.T) {
	t.Parallel()
	const rate, latency, span = 100, 300 * time.Millisecond, 10 * time.Second
	for _, workers := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d workers", workers), func(t *testing.T) {
			c := newCrowd(t, stripesim.Limits{RPS: rate, Burst: 10, LatencyMS: int(latency / time.Millisecond)})
			c.backlog(tenant, payments.LaneInteractive, 0, 5000)
			for range workers {
				c.work(512, rate)
			}
			c.awaitDone(tenant, rate/2)
			began, before := time.Now(), c.requests.Load()
			var most int64
			ended := time.After(span)
			for waiting := true; waiting; {
				select {
				case <-ended:
					waiting = false
				case <-time.After(250 * time.Millisecond):
				}
				tickets, err := c.store.TicketCount(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				most = max(most, tickets)
			}
			perSecond := float64(c.requests.Load()-before) / time.Since(began).Seconds()
			all, limited := c.requests.Load(), c.limited.Load()
			t.Logf("%.1f a second; %d of %d answered 429; at most %d at once; at most %d tickets", perSecond, limited, all, c.most.Load(), most)
			if perSecond < 0.97*rate {
				t.Errorf("%.1f a second", perSecond)
			}
			if float64(limited) >= 0.001*float64(all) {
				t.Errorf("%d of %d were answered 429", limited, all)
			}
			if atOnce := rate * latency.Seconds() * 1.5; float64(c.most.Load()) > atOnce {
				t.Errorf("%d calls at once, and %v should do", c.most.Load(), atOnce)
			}
			if int(most) > workers*256 {
				t.Errorf("%d tickets: the backlog was poured into the table", most)
			}
		})
	}
}
