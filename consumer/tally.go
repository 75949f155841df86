package consumer

import (
	"maps"
	"sync"

	"github.com/oncepay/oncepay/payments"
)

// tally counts what is in flight in this process, by lane and tenant.
type tally struct {
	mu    sync.Mutex
	lanes [2]map[string]int
}

// begin counts one payment in; end counts it out.
func (t *tally) begin(l payments.Lane, tenant string) (end func()) {
	t.add(l, tenant, 1)
	return func() { t.add(l, tenant, -1) }
}

func (t *tally) add(l payments.Lane, tenant string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := &t.lanes[l-payments.LaneInteractive]
	if *m == nil {
		*m = map[string]int{}
	}
	if (*m)[tenant] += n; (*m)[tenant] == 0 {
		delete(*m, tenant)
	}
}

// of is what is in flight in the lane, by tenant.
func (t *tally) of(l payments.Lane) map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.lanes[l-payments.LaneInteractive])
}
