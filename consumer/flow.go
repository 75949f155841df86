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
	changed   chan struct{}
}

func newFlow(clock payments.Clock, u *unclaimed, most int) *flow {
	return &flow{clock: clock, unclaimed: u, most: most, window: min(flowFirst, most), changed: make(chan struct{}, 1)}
}

// room waits until messages may be pulled and says how many; 0 only when ctx ends. hold is called when tickets keep the lane waiting.
func (f *flow) room(ctx context.Context, hold func()) int {
	var since time.Time
	for ctx.Err() == nil {
		n, held := f.now()
		switch {
		case !held && !since.IsZero():
			f.held(f.clock.Now().Sub(since))
			since = time.Time{}
			continue // with another window
		case held && since.IsZero():
			since = f.clock.Now()
			hold()
		case !held && n > 0:
			return n
		}
		select {
		case <-f.changed:
		case <-f.unclaimed.fewer:
		case <-ctx.Done():
		}
	}
	return 0
}

func (f *flow) now() (n int, held bool) {
	waiting := f.unclaimed.pulledNow()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.holding = waiting > f.window/2
	return f.window - f.undecided, f.holding
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
	poke(f.changed)
}

// absent ends those that did not come.
func (p *pull) absent(n int) {
	p.flow.mu.Lock()
	defer p.flow.mu.Unlock()
	p.flow.undecided -= n
}
