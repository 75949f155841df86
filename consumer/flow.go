package consumer

import (
	"context"
	"sync"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// The bounds of a lane's window. It is halved when its tickets wait for longer than holdLong, and doubled when they are taken within holdShort:
// so what waits in the store is taken within a second or so at any rate, and is never nothing while a pull is under way.
const (
	flowFirst = 16
	flowMin   = 4
	holdShort = 250 * time.Millisecond
	holdLong  = 2 * time.Second
	// holdMost is how long tickets keep the lane from pulling anything at all: what was accepted over HTTP may stand before them, for hours, and the
	// next message may be of a tenant who has nothing to do with it. Then messages come until one leaves tickets again. That is one in so long a time,
	// be it a batch of a hundred payments, so that the backlog stays in the stream all the same.
	holdMost = 10 * time.Second
)

// flow bounds how many messages a lane pulls before it knows what becomes of them. While every message finds room the window opens, and soon
// holds nothing back. Once messages have to be stored for want of budget no more are pulled until most of those tickets have been taken: the
// backlog stays in the stream, however large it is.
type flow struct {
	clock     payments.Clock
	unclaimed *unclaimed
	most      int // the slots: more is never needed

	mu        sync.Mutex
	window    int
	undecided int
	holding   bool
	through   int // how many messages may come at once although tickets wait; 0: none
	changed   chan struct{}
}

func newFlow(clock payments.Clock, u *unclaimed, most int) *flow {
	return &flow{clock: clock, unclaimed: u, most: most, window: min(flowFirst, most), changed: make(chan struct{}, 1)}
}

// room waits until messages may be pulled and says how many; 0 only when ctx ends. hold is called when tickets keep the lane waiting. Those that do
// for longer than holdMost let messages through until one leaves more of them.
func (f *flow) room(ctx context.Context, hold func()) int {
	var since time.Time
	patience := time.NewTimer(holdMost)
	defer patience.Stop()
	for ctx.Err() == nil {
		n, held := f.now()
		switch {
		case !held && !since.IsZero():
			f.held(f.clock.Now().Sub(since))
			since = time.Time{}
			continue // with another window
		case held && since.IsZero():
			since = f.clock.Now()
			patience.Reset(holdMost)
			hold()
		case !held && n > 0:
			return n
		}
		select {
		case <-f.changed:
		case <-f.unclaimed.fewer:
		case <-patience.C:
			patience.Reset(holdMost)
			f.letThrough()
		case <-ctx.Done():
		}
	}
	return 0
}

func (f *flow) now() (n int, held bool) {
	waiting := f.unclaimed.pulledNow()
	f.mu.Lock()
	defer f.mu.Unlock()
	n = f.window - f.undecided
	switch f.holding = waiting > f.window/2; {
	case !f.holding:
		f.through = 0
	case f.through == 0:
		return n, true
	case f.undecided > 0: // what came leaves tickets, perhaps
		return 0, false
	}
	if f.holding {
		n = min(n, f.through)
	}
	return n, false
}

// letThrough lets a message come in spite of tickets that wait.
func (f *flow) letThrough() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.through == 0 {
		f.through = 1
	}
}

// held adapts the window to how long its tickets took.
func (f *flow) held(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case d >= 0 && d < holdShort:
		f.window = min(2*f.window, f.most)
	case d > holdLong:
		f.window = max(f.window/2, min(flowMin, f.most))
	}
}

// isHolding reports whether tickets keep the lane from pulling.
func (f *flow) isHolding() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.holding
}

// pull is one pull of a lane.
type pull struct {
	flow *flow
	rest *rest
	full bool // it asked for all that the window allowed
}

// begin begins a pull of n messages.
func (f *flow) begin(n int, full bool, r *rest) *pull {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.undecided += n
	return &pull{flow: f, rest: r, full: full}
}

// decided notes that the fate of a message is known. Each that found room opens the window by one more, as far as the window is what holds the
// lane back.
func (p *pull) decided(room bool) {
	f := p.flow
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.undecided--; p.full && room {
		f.window = min(f.window+1, f.most)
	}
	switch {
	case !room:
		f.through = 0
	case f.undecided == 0: // none of them left a ticket: copies of payments that are stored, mostly
		f.through = min(2*f.through, f.most)
	}
	poke(f.changed)
}

// absent ends those that did not come.
func (p *pull) absent(n int) {
	p.flow.mu.Lock()
	defer p.flow.mu.Unlock()
	if p.flow.undecided -= n; n > 0 {
		p.flow.through = min(p.flow.through, 1) // what comes next is new
	}
}
