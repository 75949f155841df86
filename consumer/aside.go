package consumer

import (
	"context"
	"sync"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// settleFrom settles a payment whose owner may leave its place while Stripe's records are read. They are read by as many at once as there are
// slots; whoever comes after those keeps its place.
func (w *Worker) settleFrom(ctx context.Context, c payments.Claim, place payments.Aside) {
	if payments.Next(c.Payment, w.Clock.Now()) == payments.ActionLook {
		select {
		case w.looking <- struct{}{}:
			defer func() { <-w.looking }()
			p := *w.Processor
			p.Aside = place
			w.settleWith(ctx, &p, c, time.Time{})
			return
		default:
		}
	}
	w.settle(ctx, c, time.Time{})
}

// roomAside reports whether one more may look up aside. While there is no room no ticket is worked on alone: it would read its listing with everybody
// else shut out.
func (w *Worker) roomAside() bool { return len(w.looking) < cap(w.looking) }

// bystander has a slot and a place beside others.
type bystander struct {
	w      *Worker
	slot   *slot
	inside bool
}

// Leave implements payments.Aside.
func (b *bystander) Leave() {
	b.end()
	b.slot.giveBack()
}

// Return implements payments.Aside.
func (b *bystander) Return(ctx context.Context) bool {
	b.inside = b.inside || b.slot.takeAgain(ctx) && b.w.gate.enter(ctx, 1)
	return b.inside
}

func (b *bystander) end() {
	if b.inside {
		b.inside = false
		b.w.gate.leave(1)
	}
}

// loner works while nobody else does.
type loner struct {
	w        *Worker
	queued   *gateWaiter
	patience *time.Timer
	beside   bool // its patience has ended
	leave    func()
	left     chan struct{} // closed once it works aside, or has ended
	once     sync.Once
}

// Leave implements payments.Aside. Its place was that of whoever waits for it to leave.
func (l *loner) Leave() { l.once.Do(func() { close(l.left) }) }

// Return implements payments.Aside. Who comes again because ctx has ended keeps its turn. When its patience ends it goes in beside the others,
// and does not ask to be alone again: several who did, by turns, would keep everybody out for as long as a handler hangs.
func (l *loner) Return(ctx context.Context) bool {
	if l.queued == nil && !l.beside {
		l.queued, l.patience = l.w.gate.queueAlone(), time.NewTimer(alonePatience*l.w.Lease)
	}
	if !l.beside {
		select {
		case <-l.queued.open:
			l.leave = l.w.gate.leaveAlone
			return true
		case <-ctx.Done():
			return false
		case <-l.patience.C:
		}
		l.w.Log.Error("a handler in this process hangs; payments that should be worked on alone are worked on beside it")
		l.w.gate.giveUp(l.queued)
		l.queued, l.beside = nil, true
	}
	if !l.w.gate.enter(ctx, 1) {
		return false
	}
	l.leave = func() { l.w.gate.leave(1) }
	return true
}

// end gives up the place, or the turn.
func (l *loner) end() {
	if l.patience != nil {
		l.patience.Stop()
	}
	switch {
	case l.leave != nil:
		l.leave()
	case l.queued != nil:
		l.w.gate.giveUp(l.queued)
	}
	if l.left != nil {
		l.Leave()
	}
}
