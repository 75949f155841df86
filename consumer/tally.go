package consumer

import (
	"maps"
	"sync"

	"github.com/oncepay/oncepay/payments"
)

// tally counts what is in flight in this process, by lane and tenant, and whose messages came.
type tally struct {
	mu    sync.Mutex
	lanes [2]struct{ inFlight, came map[string]int }
}

// begin counts one payment in; end counts it out.
func (t *tally) begin(l payments.Lane, tenant string) (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := &t.lanes[l-payments.LaneInteractive].inFlight
	if *m == nil {
		*m = map[string]int{}
	}
	(*m)[tenant]++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if (*m)[tenant]--; (*m)[tenant] == 0 {
			delete(*m, tenant)
		}
	}
}

// note counts a message of the tenant that came in the stream's order.
func (t *tally) note(l payments.Lane, tenant string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.lanes[l-payments.LaneInteractive].came; m != nil {
		m[tenant]++
	}
}

// came is whose messages have come since it was last asked. Until then nothing is counted.
func (t *tally) came(l payments.Lane) map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.lanes[l-payments.LaneInteractive].came
	t.lanes[l-payments.LaneInteractive].came = map[string]int{}
	return m
}

// idle counts no messages until came is asked again.
func (t *tally) idle(l payments.Lane) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lanes[l-payments.LaneInteractive].came = nil
}

// of is what is in flight in the lane, by tenant.
func (t *tally) of(l payments.Lane) map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.lanes[l-payments.LaneInteractive].inFlight)
}
