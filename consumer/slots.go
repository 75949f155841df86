package consumer

import (
	"context"
	"sync"

	"github.com/oncepay/oncepay/payments"
)

// slots bounds how many payments are in flight in this process. A share of them is for the interactive lane alone, so that a backlog of bulk
// work, however large, never holds up a checkout.
type slots struct {
	mu       sync.Mutex
	total    int
	floor    int // slots that only the interactive lane may use
	used     int
	usedBulk int
	changed  chan struct{} // closed and replaced whenever slots become free
}

func newSlots(total int) *slots {
	return &slots{total: total, floor: max(1, total/4), changed: make(chan struct{})}
}

func (s *slots) freeLocked(lane payments.Lane) int {
	free := s.total - s.used
	if lane == payments.LaneBulk {
		free = min(free, s.total-s.floor-s.usedBulk)
	}
	return free
}

// tryAcquire takes up to want slots at once and returns how many it got.
func (s *slots) tryAcquire(lane payments.Lane, want int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := max(0, min(want, s.freeLocked(lane)))
	s.used += n
	if lane == payments.LaneBulk {
		s.usedBulk += n
	}
	return n
}

// acquire waits for at least one slot and takes up to want. It returns 0 only when ctx ends.
func (s *slots) acquire(ctx context.Context, lane payments.Lane, want int) int {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if n := s.tryAcquire(lane, want); n > 0 {
			return n
		}
		select {
		case <-ctx.Done():
			return 0
		case <-changed:
		}
	}
}

// release gives n slots back.
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
	close(s.changed)
	s.changed = make(chan struct{})
}

// inUse is how many payments are in flight.
func (s *slots) inUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}
