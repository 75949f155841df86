package consumer

import (
	"context"
	"slices"
	"sync"

	"github.com/oncepay/oncepay/payments"
)

// slots bounds how many payments are in flight in this process. A share of them is for the interactive lane alone, so that a backlog of bulk
// work, however large, never holds up a checkout. Whoever waits is served in turn: while a stream has a backlog every free slot is wanted, and
// due tickets must not starve beside it.
type slots struct {
	mu       sync.Mutex
	total    int
	floor    int // slots that only the interactive lane may use
	used     int
	usedBulk int
	waiting  []*slotWaiter // first come, first served
}

type slotWaiter struct {
	lane    payments.Lane
	want    int
	granted chan int // has room for the one answer
}

func newSlots(total int) *slots {
	return &slots{total: total, floor: max(1, total/4)}
}

// takeLocked takes up to want slots and returns how many there were.
func (s *slots) takeLocked(lane payments.Lane, want int) int {
	free := s.total - s.used
	if lane == payments.LaneBulk {
		free = min(free, s.total-s.floor-s.usedBulk)
	}
	n := max(0, min(want, free))
	s.used += n
	if lane == payments.LaneBulk {
		s.usedBulk += n
	}
	return n
}

// acquire waits for at least one slot and takes up to want, which is at least 1. It returns 0 only when ctx ends.
func (s *slots) acquire(ctx context.Context, lane payments.Lane, want int) int {
	if ctx.Err() != nil {
		return 0
	}
	s.mu.Lock()
	// A slot that is free now is one that nobody who waits could use.
	if n := s.takeLocked(lane, want); n > 0 {
		s.mu.Unlock()
		return n
	}
	w := &slotWaiter{lane: lane, want: want, granted: make(chan int, 1)}
	s.waiting = append(s.waiting, w)
	s.mu.Unlock()
	select {
	case n := <-w.granted:
		return n
	case <-ctx.Done():
	}
	s.mu.Lock()
	s.waiting = slices.DeleteFunc(s.waiting, func(other *slotWaiter) bool { return other == w })
	s.mu.Unlock()
	select {
	case n := <-w.granted: // both at once: the caller has stopped
		s.release(lane, n)
	default:
	}
	return 0
}

// release gives n slots back, to those who wait for them first.
func (s *slots) release(lane payments.Lane, n int) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= n
	if lane == payments.LaneBulk {
		s.usedBulk -= n
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(w *slotWaiter) bool {
		got := s.takeLocked(w.lane, w.want)
		if got > 0 {
			w.granted <- got
		}
		return got > 0
	})
}

// inUse is how many slots are taken, those of open pulls included.
func (s *slots) inUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}
