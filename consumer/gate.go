package consumer

import (
	"context"
	"slices"
	"sync"
	"time"
)

// gate lets many work side by side, or one alone. Everybody enters before a claim is made, so that nobody's lease runs down while one that is
// alone keeps the others out. Whoever waits to be alone comes before newcomers. To become alone costs the time of the slowest call that is under way,
// so that one who waits for it follows the other, as long as a stint; then those who waited meanwhile have their turn.
type gate struct {
	mu     sync.Mutex
	inside int
	closed bool        // one is inside alone
	stint  *time.Timer // ends the time in which one alone follows another
	many   []*gateWaiter
	alone  []*gateWaiter
}

type gateWaiter struct {
	places int
	open   chan struct{} // closed when the waiter is inside
}

// enter takes n places beside others. It returns false only when ctx ends.
func (g *gate) enter(ctx context.Context, n int) bool {
	g.mu.Lock()
	if !g.closed && len(g.alone) == 0 {
		g.inside += n
		g.mu.Unlock()
		return true
	}
	w := &gateWaiter{places: n, open: make(chan struct{})}
	g.many = append(g.many, w)
	g.mu.Unlock()
	select {
	case <-w.open:
		return true
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !without(&g.many, w) {
		g.leaveLocked(n) // let in at the same moment
	}
	return false
}

// leave gives n places back.
func (g *gate) leave(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.leaveLocked(n)
}

func (g *gate) leaveLocked(n int) {
	g.inside -= n
	g.nextLocked()
}

// queueAlone asks to be inside alone; that is so when open is closed, and ends with leaveAlone. The caller must not be inside.
func (g *gate) queueAlone() *gateWaiter {
	w := &gateWaiter{open: make(chan struct{})}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.alone = append(g.alone, w)
	g.nextLocked()
	return w
}

// giveUp ends a wait to be alone, whatever it has come to.
func (g *gate) giveUp(w *gateWaiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !without(&g.alone, w) {
		g.closed = false
	}
	if !g.closed && len(g.alone) == 0 {
		g.letInLocked()
	}
	g.nextLocked()
}

// leaveAlone lets in the next one alone, within a stint, or else all who waited meanwhile.
func (g *gate) leaveAlone() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.stint.C:
	default:
		if len(g.alone) > 0 {
			g.openAloneLocked()
			return
		}
	}
	g.closed = false
	g.letInLocked()
	g.nextLocked()
}

func (g *gate) letInLocked() {
	for _, w := range g.many {
		g.inside += w.places
		close(w.open)
	}
	g.many = nil
}

// nextLocked closes the gate behind the first who waits to be alone, once nobody is inside.
func (g *gate) nextLocked() {
	if g.closed || g.inside > 0 || len(g.alone) == 0 {
		return
	}
	g.closed, g.stint = true, time.NewTimer(aloneStint)
	g.openAloneLocked()
}

func (g *gate) openAloneLocked() {
	close(g.alone[0].open)
	g.alone = slices.Delete(g.alone, 0, 1)
}

// without removes w and reports whether it was there.
func without(list *[]*gateWaiter, w *gateWaiter) bool {
	i := slices.Index(*list, w)
	if i >= 0 {
		*list = slices.Delete(*list, i, i+1)
	}
	return i >= 0
}
