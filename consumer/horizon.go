package consumer

import (
	"slices"
	"sync/atomic"
	"time"
)

// horizon is what the scout knows of the messages ahead of its lane's consumer. Between two listings of the stream's tenants a count that
// has changed says whose messages are new, and the stream's last sequence before the first of them says where they can be at the earliest. A
// tenant of whom as many messages were trimmed as came is overlooked; they have their turn in the stream.
type horizon struct {
	created time.Time
	// listed is the stream's last sequence before the last listing: what is counted for the first time by the next one lies above it.
	listed  uint64
	seen    bool // there has been a listing
	tenants map[string]*tenantAhead
	// open are those that may have messages ahead, the ones with more messages than before first, then those with fewer.
	open []*tenantAhead
}

// tenantAhead is what is known of one tenant.
type tenantAhead struct {
	tenant string
	count  uint64 // messages in the stream, at the last listing
	// What the scout has not had of the tenant's messages is between low and high, both included, if anywhere.
	low, high uint64
	known     bool // there is one, as far as can be told without asking
	swept     bool // high is not merely the stream's end

	busy    atomic.Bool // some of its messages are being brought: nothing else here may be touched
	reader  aheadReader // nil: none is open
	window  int         // how many of its tickets may wait to be taken
	brought time.Time   // when the scout last stored one
	refill  time.Time   // when it was last asked for more
	layoff  time.Time   // until then another process scouts for it
}

// laidOff reports whether the tenant is left to another process. A clock that was set back does not make it long.
func (t *tenantAhead) laidOff(now time.Time) bool {
	left := t.layoff.Sub(now)
	return left > 0 && left <= 2*layoffTime
}

// empty reports whether nothing of the tenant is ahead, of what was not delivered at the last advance.
func (t *tenantAhead) empty() bool { return t.low > t.high }

// advance forgets what has been delivered meanwhile.
func (t *tenantAhead) advance(delivered uint64) {
	if t.low <= delivered {
		t.low, t.known = delivered+1, false
	}
}

// pass notes that the scout has had the message.
func (t *tenantAhead) pass(sequence uint64) {
	t.high = max(t.high, sequence)
	t.low, t.known = sequence+1, sequence < t.high
}

// nothing notes that no message of the tenant is at low or after it.
func (t *tenantAhead) nothing() { t.low, t.known = t.high+1, false }

// reset begins anew: with another stream, or a consumer that was set back, sequences mean something else.
func (h *horizon) reset(created time.Time) {
	*h = horizon{created: created, tenants: map[string]*tenantAhead{}}
}

// list takes in a listing of the tenants' counts, made after the position before and ahead of the position after.
func (h *horizon) list(before, after position, counts map[string]uint64) {
	for tenant, t := range h.tenants {
		if counts[tenant] == 0 && !t.busy.Load() {
			delete(h.tenants, tenant)
		}
	}
	var fresh, fewer, others []*tenantAhead
	for tenant, count := range counts {
		t := h.tenants[tenant]
		if t == nil {
			t = &tenantAhead{tenant: tenant, low: 1}
			h.tenants[tenant] = t
		}
		if t.busy.Load() { // as it is until the next listing
			fresh = append(fresh, t)
			continue
		}
		t.advance(before.delivered)
		if count == t.count {
			if !t.empty() {
				others = append(others, t)
			}
			continue
		}
		if h.seen && t.empty() {
			t.low, t.swept = max(t.low, h.listed+1), true
		}
		if count > t.count {
			fresh = append(fresh, t)
		} else {
			fewer = append(fewer, t)
		}
		t.count, t.high = count, after.last
	}
	h.open, h.listed, h.seen = slices.Concat(fresh, fewer, others), before.last, true
}
