package consumer

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/oncepay/oncepay/payments"
)

// slots bounds how many payments are in flight in this process. A share of them is for the interactive lane alone, so that a backlog of bulk
// work, however large, never holds up a checkout. Whoever waits is served in turn. Within a lane, messages and due tickets share: while there
// is more of both than slots, neither gets the other's share. Who is served in turn alone gets one slot at a time, since a pull is over and
// back long before a Take is.
type slots struct {
	mu      sync.Mutex
	total   int
	floor   int // slots that only the interactive lane may use
	used    int
	lanes   [2]laneSlots
	waiting []*slotWaiter // first come, first served
}

// source is what a slot is used for.
type source int

const (
	forMessages source = iota
	forTickets
)

func (s source) other() source { return forTickets - s }

// laneSlots are one lane's.
type laneSlots struct {
	used   [2]int  // by source
	hungry [2]bool // there is more of the source than has slots
	// messages is the share of the lane's slots that messages get while both sources are hungry.
	messages float64
}

func (l *laneSlots) inUse() int { return l.used[forMessages] + l.used[forTickets] }

// evenShare is the messages' share as long as nobody knows better.
const evenShare = 0.5

type slotWaiter struct {
	lane    payments.Lane
	source  source
	want    int
	granted chan int // has room for the one answer
}

func newSlots(total int) *slots {
	return &slots{total: total, floor: max(1, total/4), lanes: [2]laneSlots{{messages: evenShare}, {messages: evenShare}}}
}

func (s *slots) of(lane payments.Lane) *laneSlots { return &s.lanes[lane-payments.LaneInteractive] }

// most is how many slots the lane may have when the other has none.
func (s *slots) most(lane payments.Lane) int {
	if lane == payments.LaneBulk {
		return s.total - s.floor
	}
	return s.total
}

// takeLocked takes up to want slots and returns how many there were.
func (s *slots) takeLocked(lane payments.Lane, from source, want int) int {
	l := s.of(lane)
	free := min(s.total-s.used, s.most(lane)-l.inUse())
	n := min(want, free)
	if l.hungry[from.other()] {
		share := l.messages
		if from == forTickets {
			share = 1 - share
		}
		// Rounded up: whatever the shares, nobody stands still for good and no slot is left over.
		n = min(n, int(math.Ceil(share*float64(l.inUse()+free)-1e-9))-l.used[from])
	}
	n = max(0, n)
	s.used += n
	l.used[from] += n
	return n
}

// acquire waits for at least one slot and takes up to want, which is at least 1. It returns 0 only when ctx ends.
func (s *slots) acquire(ctx context.Context, lane payments.Lane, from source, want int) int {
	if ctx.Err() != nil {
		return 0
	}
	s.mu.Lock()
	// A slot that is free now is one that nobody who waits could use.
	if n := s.takeLocked(lane, from, want); n > 0 {
		s.mu.Unlock()
		return n
	}
	w := &slotWaiter{lane: lane, source: from, want: want, granted: make(chan int, 1)}
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
		s.release(lane, from, n)
	default:
	}
	return 0
}

// release gives n slots back, to those who wait for them first.
func (s *slots) release(lane payments.Lane, from source, n int) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= n
	s.of(lane).used[from] -= n
	s.grantLocked()
}

func (s *slots) grantLocked() {
	s.waiting = slices.DeleteFunc(s.waiting, func(w *slotWaiter) bool {
		got := s.takeLocked(w.lane, w.source, w.want)
		if got > 0 {
			w.granted <- got
		}
		return got > 0
	})
}

// setHungry notes whether there is more of a lane's source than has slots.
func (s *slots) setHungry(lane payments.Lane, from source, hungry bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.of(lane)
	if l.hungry[from] == hungry {
		return
	}
	l.hungry[from] = hungry
	s.grantLocked()
}

// setShare sets the messages' share of the lane's slots.
func (s *slots) setShare(lane payments.Lane, messages float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(lane).messages = messages
	s.grantLocked()
}

// inUse is how many slots are taken, those of open pulls included.
func (s *slots) inUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// slot is one of a lane's, and whether its handler has it now.
type slot struct {
	of   *slots
	lane payments.Lane
	from source
	has  bool
}

func (s *slot) giveBack() {
	if s.has {
		s.has = false
		s.of.release(s.lane, s.from, 1)
	}
}

// takeAgain waits for a slot; false when ctx ends.
func (s *slot) takeAgain(ctx context.Context) bool {
	s.has = s.has || s.of.acquire(ctx, s.lane, s.from, 1) == 1
	return s.has
}
