package stripe

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/oncepay/oncepay/payments"
)

var errLeft = errors.New("nobody waits for the look-up any more")

// seat is one payment's part in a listing, which may be read for several.
type seat struct {
	payment string // its id
	found   []payments.PaymentIntent
	seen    []string // ids of PaymentIntents of the payment's that events tell of
	failed  string   // why the listing proves nothing about this payment, though it may about others

	mu       sync.Mutex // progress runs under it, so that it has ended when leave returns
	progress func() error
	left     bool

	turn chan *round               // told to read the listing
	done chan payments.Observation // or told what came of it
}

func newSeat(p payments.Payment, progress func() error) *seat {
	return &seat{payment: p.ID.String(), progress: progress, turn: make(chan *round, 1), done: make(chan payments.Observation, 1)}
}

// leave gives the seat up; progress is not called any more.
func (s *seat) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = true
}

// tell asks the seat to read the round's listing; it reports false when nobody waits there.
func (s *seat) tell(r *round) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.left {
		s.turn <- r
	}
	return !s.left
}

func (s *seat) extend() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.left:
		return errLeft
	case s.progress == nil:
		return nil
	}
	return s.progress()
}

// extend calls everybody's progress before a page, all at once since each waits for a commit, and returns the seats that go on.
func extend(seats []*seat) []*seat {
	errs := make([]error, len(seats))
	var wg sync.WaitGroup
	for i, s := range seats {
		if i < len(seats)-1 {
			wg.Go(func() { errs[i] = s.extend() })
		} else {
			errs[i] = s.extend()
		}
	}
	wg.Wait()
	var on []*seat
	for i, s := range seats {
		if s.failed == "" && errs[i] != nil {
			s.failed = "the look-up was ended before a page"
		}
		if s.failed == "" {
			on = append(on, s)
		}
	}
	return on
}

// mention gives what an event tells of to the seats that it belongs to.
func mention(seats []*seat, item record) {
	for _, s := range seats {
		if s.payment == item.metadata[MetadataPayment] && !slices.Contains(s.seen, item.about) {
			s.seen = append(s.seen, item.about)
		}
	}
}

// offer gives a record to the seats that it belongs to; the listing can bring it twice.
func offer(seats []*seat, item record) {
	for _, s := range seats {
		if s.payment != item.metadata[MetadataPayment] || s.has(item.id) {
			continue
		}
		pi, err := decodeIntent(item.raw)
		if err != nil {
			s.failed = "a PaymentIntent of the payment cannot be read: " + err.Error()
			continue
		}
		s.found = append(s.found, pi)
	}
}

func (s *seat) has(id string) bool {
	for _, pi := range s.found {
		if pi.ID == id {
			return true
		}
	}
	return false
}

// result makes this payment's observation of what came of the listing.
func (s *seat) result(o payments.Observation) payments.Observation {
	switch {
	case s.failed != "":
		o.Kind, o.Detail = payments.ObservedNoRecords, s.failed
	case o.Kind == payments.ObservedRecords:
		o.Found = s.found
		o.Detail = fmt.Sprintf("%s: %d of this payment", o.Detail, len(s.found))
	}
	return o
}
