package producer

import (
	"context"
	"sync"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// waiting is an item in memory.
type waiting struct {
	item  payments.OutboxItem
	since time.Time
	tries int // in groups in which others got through
}

// relayQueue is what a relay holds in memory: items that wait for their stream's
// committer, and those that it has in hand.
type relayQueue struct {
	maxItems int
	now      func() time.Time

	mu    sync.Mutex
	held  map[int64]time.Time // every item here, by id, and since when: polls and offers overlap
	bytes int
	lanes map[*relayLane][]waiting
	// behind says that the outbox may hold items that are not here: nobody has
	// polled yet, a poll filled its limit, or an offer found no room.
	behind    bool
	overflows int // offers that found no room
	// still are the lanes, of all committers, whose stream takes nothing; true: since
	// there is no connection, which is the others' as well. While no lane can send
	// there is nothing to poll for.
	still      map[*relayLane]bool
	committers int
	// changed is closed and replaced whenever held, behind or still shrinks.
	changed chan struct{}
}

func newRelayQueue(maxItems int, now func() time.Time) *relayQueue {
	return &relayQueue{
		maxItems: maxItems, now: now, behind: true,
		held: map[int64]time.Time{}, lanes: map[*relayLane][]waiting{}, still: map[*relayLane]bool{}, changed: make(chan struct{}),
	}
}

// add queues the items that are not here yet, as far as there is room, and reports
// whether all found some. force is for items that a poll took a hold on.
func (q *relayQueue) add(route func(payments.OutboxItem) *relayLane, items []payments.OutboxItem, force bool) (all bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	woken := map[*relayLane]bool{}
	all = true
	for _, item := range items {
		if _, here := q.held[item.ID]; here {
			continue
		}
		if !force && (len(q.held) >= q.maxItems || q.bytes+len(item.Body) > relayQueueBytes) {
			all = false
			continue
		}
		lane := route(item)
		q.held[item.ID] = now
		q.bytes += len(item.Body)
		q.lanes[lane] = append(q.lanes[lane], waiting{item: item, since: now})
		woken[lane] = true
	}
	if !all {
		q.behind = true
		q.overflows++
	}
	for lane := range woken {
		lane.nudge()
	}
	return all
}

// take removes the next group of a lane: what queued while its last was under way,
// up to the bounds. The items stay held.
func (q *relayQueue) take(lane *relayLane, maxItems int) []waiting {
	q.mu.Lock()
	defer q.mu.Unlock()
	queue := q.lanes[lane]
	n, bytes := 0, 0
	for n < len(queue) && n < maxItems {
		bytes += len(queue[n].item.Body)
		if n > 0 && bytes > relayGroupBytes {
			break
		}
		n++
	}
	group := queue[:n:n]
	if n == len(queue) {
		q.lanes[lane] = nil // the array belongs to the group now
	} else {
		q.lanes[lane] = queue[n:]
	}
	return group
}

// putBack queues a group again, before all others.
func (q *relayQueue) putBack(lane *relayLane, group []waiting) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lanes[lane] = append(group[:len(group):len(group)], q.lanes[lane]...)
}

// release lets go of items: they are settled, or left to a later poll.
func (q *relayQueue) release(group []waiting) {
	if len(group) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.releaseLocked(group)
}

func (q *relayQueue) releaseLocked(group []waiting) {
	for _, w := range group {
		if _, here := q.held[w.item.ID]; here {
			delete(q.held, w.item.ID)
			q.bytes -= len(w.item.Body)
		}
	}
	q.notify()
}

// expire lets go of a lane's items that came before the given time, all but the
// first few: the hold on them is over, and somebody else may have them by now.
func (q *relayQueue) expire(lane *relayLane, before time.Time, keep int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	queue := q.lanes[lane]
	if len(queue) <= keep {
		return
	}
	var gone, rest []waiting
	for i, w := range queue {
		if i >= keep && w.since.Before(before) {
			gone = append(gone, w)
		} else {
			rest = append(rest, w)
		}
	}
	if len(gone) > 0 {
		q.lanes[lane], q.behind = rest, true
		q.releaseLocked(gone)
	}
}

// drop lets go of all that a lane has queued.
func (q *relayQueue) drop(lane *relayLane) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if queue := q.lanes[lane]; len(queue) > 0 {
		q.lanes[lane], q.behind = nil, true
		q.releaseLocked(queue)
	}
}

// setStill notes whether a lane's stream takes nothing; away: because there is no
// connection.
func (q *relayQueue) setStill(lane *relayLane, still, away bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if still {
		q.still[lane] = away
	} else if _, was := q.still[lane]; was {
		delete(q.still, lane)
	}
	q.notify()
}

// standsLocked reports whether no lane can send.
func (q *relayQueue) standsLocked() bool {
	for _, away := range q.still {
		if away {
			return true
		}
	}
	return len(q.still) > 0 && len(q.still) == q.committers
}

// moving is how many of the items are for streams that take any.
func (q *relayQueue) moving(route func(payments.OutboxItem) *relayLane, items []payments.OutboxItem) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, item := range items {
		if _, still := q.still[route(item)]; !still {
			n++
		}
	}
	return n
}

// polling begins a poll: what overflows from now on it may have missed.
func (q *relayQueue) polling() (overflows int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.overflows
}

// polled notes what a poll has shown: whether the outbox may hold more.
func (q *relayQueue) polled(overflows int, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.behind = more || q.overflows != overflows
	q.notify()
}

func (q *relayQueue) notify() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// room is how many more items may be polled.
func (q *relayQueue) room() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.bytes >= relayQueueBytes || q.standsLocked() {
		return 0
	}
	return max(q.maxItems-len(q.held), 0)
}

// empty reports whether a lane has nothing queued.
func (q *relayQueue) empty(lane *relayLane) bool { return q.len(lane) == 0 }

// len is how many items a lane has queued.
func (q *relayQueue) len(lane *relayLane) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.lanes[lane])
}

// idle reports whether nothing is held and the outbox is not known to hold more.
// The channel is closed when that may have changed.
func (q *relayQueue) idle() (bool, <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.held) == 0 && !q.behind, q.changed
}

// depth is how many items are held, and the age of the oldest.
func (q *relayQueue) depth() (items int, oldest time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.held) == 0 {
		return 0, 0
	}
	now := q.now()
	for lane, queue := range q.lanes {
		if len(queue) > 0 {
			oldest = max(oldest, now.Sub(queue[0].since))
		}
		if since := lane.flying.Load(); since != nil {
			oldest = max(oldest, now.Sub(*since))
		}
	}
	return len(q.held), oldest
}

// waitRoom returns when something was released, or ctx ends.
func (q *relayQueue) waitRoom(ctx context.Context) {
	for {
		_, changed := q.idle() // first, so that no release is missed
		if q.room() > 0 {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
