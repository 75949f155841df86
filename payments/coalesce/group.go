// Package coalesce turns many concurrent calls into few batches without a timer (natural group commit):
// an item that finds nobody flushing is flushed at once, and whatever queued while a flush ran goes out
// in the next. Callers stay straight-line code, one goroutine an item.
//
// A waiter may leave only while its item is queued, and then the item is never flushed; once its flush
// has started the waiter gets the flush's answer whatever becomes of the waiter's context, because a
// waiter that left in the middle would not know what was done in its name. The flush runs on a context
// of its own. Equal items are not merged: two equal items in one flush are two items.
package coalesce

import (
	"context"
	"sync"
)

// Group batches items for one Flush. It is safe for concurrent use and holds no goroutine while idle.
type Group[Q, R any] struct {
	opts  Options[Q]
	flush Flush[Q, R]

	room    chan struct{} // one token per queued item: full when the queue is
	closing chan struct{} // closed by the first Close
	drained chan struct{} // closed when closed and the last committer has left
	slots   sync.Pool

	mu         sync.Mutex
	queue      queue[Q, R]
	committers int // running; 0 only when the queue is empty
	closed     bool
}

// New returns a Group that sends its batches to flush. It panics when flush is nil, or when MaxWeight
// is set without Weight.
func New[Q, R any](opts Options[Q], flush Flush[Q, R]) *Group[Q, R] {
	if flush == nil {
		panic("coalesce: New needs a Flush")
	}
	opts = opts.withDefaults()
	g := &Group[Q, R]{
		opts:    opts,
		flush:   flush,
		room:    make(chan struct{}, opts.MaxQueue),
		closing: make(chan struct{}),
		drained: make(chan struct{}),
	}
	g.slots.New = func() any { return &slot[Q, R]{done: make(chan struct{}, 1)} }
	return g
}

// Do queues q, waits for the flush that it goes into and returns q's own result. While the queue is
// full it waits for room. When ctx ends before the flush has started, q leaves the queue and the error
// wraps ErrNotFlushed and ctx.Err(); after that ctx is not looked at. It returns ErrClosed once Close
// was called; other errors are the flush's: q's own, the batch's, *PanicError or *CountError.
func (g *Group[Q, R]) Do(ctx context.Context, q Q) (R, error) {
	s, err := g.enqueue(ctx, q)
	if err != nil {
		var none R
		return none, err
	}
	res := g.wait(ctx, s)
	return res.Value, res.Err
}

// DoAll queues all items in their order and waits for all of them; result i answers item i, as Do
// would. The items share flushes with those of other callers and may be spread over several, of which
// some may fail. When ctx ends, items that were not in a flush by then are not flushed.
func (g *Group[Q, R]) DoAll(ctx context.Context, items []Q) []Result[R] {
	results := make([]Result[R], len(items))
	slots := make([]*slot[Q, R], len(items))
	for i, q := range items {
		slots[i], results[i].Err = g.enqueue(ctx, q)
	}
	for i, s := range slots {
		if s != nil {
			results[i] = g.wait(ctx, s)
		}
	}
	return results
}

// Len is the number of items that wait for a flush.
func (g *Group[Q, R]) Len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.queue.len
}

// Close refuses new items, and those that still wait for room, with ErrClosed; it then waits until all
// that is queued was flushed and answered. When ctx ends first it returns ctx.Err() and the flushes go
// on. It may be called more than once.
func (g *Group[Q, R]) Close(ctx context.Context) error {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		close(g.closing)
		if g.committers == 0 {
			close(g.drained)
		}
	}
	g.mu.Unlock()
	select {
	case <-g.drained:
		return nil
	default:
	}
	select {
	case <-g.drained:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// enqueue waits for room, queues q and sees to it that a committer is there to fetch it.
func (g *Group[Q, R]) enqueue(ctx context.Context, q Q) (*slot[Q, R], error) {
	if ctx.Err() != nil {
		return nil, notFlushed(ctx)
	}
	weight := 0
	if g.opts.Weight != nil {
		weight = max(g.opts.Weight(q), 0)
	}
	select {
	case g.room <- struct{}{}:
	default:
		select {
		case g.room <- struct{}{}:
		case <-ctx.Done():
			return nil, notFlushed(ctx)
		case <-g.closing:
			return nil, ErrClosed
		}
	}
	s := g.slots.Get().(*slot[Q, R])
	s.item, s.weight = q, weight
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		<-g.room
		g.recycle(s)
		return nil, ErrClosed
	}
	g.queue.push(s)
	start := g.committers < g.opts.Committers
	if start {
		g.committers++
	}
	g.mu.Unlock()
	if start {
		go g.commit()
	}
	return s, nil
}

// wait returns the answer to s, or takes s out of the queue when ctx ends while it is still there.
func (g *Group[Q, R]) wait(ctx context.Context, s *slot[Q, R]) Result[R] {
	select {
	case <-s.done:
	case <-ctx.Done():
		if g.leave(s) {
			g.recycle(s)
			return Result[R]{Err: notFlushed(ctx)}
		}
		<-s.done
	}
	res := s.res
	g.recycle(s)
	return res
}

// leave reports whether s was still queued; it is not any more.
func (g *Group[Q, R]) leave(s *slot[Q, R]) bool {
	g.mu.Lock()
	queued := s.queued
	if queued {
		g.queue.remove(s)
	}
	g.mu.Unlock()
	if queued {
		<-g.room
	}
	return queued
}

// recycle forgets what s held, so that the pool keeps no item alive.
func (g *Group[Q, R]) recycle(s *slot[Q, R]) {
	*s = slot[Q, R]{done: s.done}
	g.slots.Put(s)
}
