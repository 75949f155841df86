package stripe

import (
	"context"
	"sync"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// roundStretch is how much longer than one payment's own window the common one may be.
const roundStretch = 30 * time.Minute

// board gathers look-ups that have to read all of an account's window: PaymentIntents, for those without a customer to list by, and events.
// After an outage there are many, of almost the same window, and each would read the whole of it. So a round takes any number, which the slots
// of the worker bound. While one listing is read, who comes waits for the next. Nobody joins a listing that has begun: it may have passed the
// place where the payment's PaymentIntent appeared since.
type board struct {
	read func(context.Context, payments.Payment, listing, []*seat) payments.Observation

	mu   sync.Mutex
	busy bool
	next *round
}

// round is a listing that has not begun, and who waits for it.
type round struct {
	l     listing
	seats []*seat
}

// join widens the round by the window and takes a seat, unless that made the listing too long.
func (r *round) join(l listing, s *seat) bool {
	if len(r.seats) == 0 {
		r.l, r.seats = l, []*seat{s}
		return true
	}
	if l.from.IsZero() || l.to.IsZero() || r.l.from.IsZero() || r.l.to.IsZero() {
		return false
	}
	both := r.l
	if l.from.Before(both.from) {
		both.from = l.from
	}
	if l.to.After(both.to) {
		both.to = l.to
	}
	shortest := min(l.to.Sub(l.from), r.l.to.Sub(r.l.from))
	if both.to.Sub(both.from) > shortest+roundStretch {
		return false
	}
	r.l, r.seats = both, append(r.seats, s)
	return true
}

// share reads the listing together with others who need it, or alone when their windows lie elsewhere.
func (g *Gateway) share(ctx context.Context, b *board, p payments.Payment, l listing, me *seat) payments.Observation {
	b.mu.Lock()
	if b.next == nil {
		b.next = &round{}
	}
	if !b.next.join(l, me) {
		b.mu.Unlock()
		return me.result(b.read(ctx, p, l, []*seat{me}))
	}
	if b.busy {
		b.mu.Unlock()
		return g.await(ctx, b, p, me)
	}
	r := b.next
	b.busy, b.next = true, nil
	b.mu.Unlock()
	return g.lead(ctx, b, p, r, me)
}

// await waits until somebody has read the listing or this seat is told to. The ticket is extended meanwhile, as it is before pages.
func (g *Gateway) await(ctx context.Context, b *board, p payments.Payment, me *seat) payments.Observation {
	ticker := time.NewTicker(max(g.timeout/2, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case o := <-me.done:
			return me.result(o)
		case r := <-me.turn:
			return g.lead(ctx, b, p, r, me)
		case <-ticker.C:
			if me.extend() == nil {
				continue
			}
		case <-ctx.Done():
		}
		me.leave()
		select {
		case r := <-me.turn: // told at the same moment: somebody else has to
			b.pass(r)
		default:
		}
		return g.noRecords("the look-up was ended while it waited")
	}
}

// lead reads the round's listing for everybody in it, and then tells somebody to read the next.
func (g *Gateway) lead(ctx context.Context, b *board, p payments.Payment, r *round, me *seat) payments.Observation {
	o := g.noRecords("the listing broke off")
	defer func() {
		for _, s := range r.seats {
			s.done <- o
		}
		b.pass(nil)
	}()
	o = b.read(ctx, p, r.l, r.seats)
	return me.result(o)
}

// pass gives the round, or else the next, to somebody who still waits for it.
func (b *board) pass(r *round) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r == nil {
		r, b.next = b.next, nil
	}
	for ; r != nil; r, b.next = b.next, nil {
		for _, s := range r.seats {
			if s.tell(r) {
				return
			}
		}
	}
	b.busy = false
}
