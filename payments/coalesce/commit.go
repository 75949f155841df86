package coalesce

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"
)

// commit flushes batch after batch and ends when the queue is empty.
func (g *Group[Q, R]) commit() {
	ended := false
	defer func() {
		if !ended { // a flush called runtime.Goexit: this goroutine cannot go on, the queue must
			go g.commit()
		}
	}()
	var due *answers[Q, R] // to the batch before, which may wait until the next one is under way
	for {
		if due == nil {
			// Waiters that were just answered get to queue their next items before the batch is taken:
			// with 512 callers and flushes of 2 ms on two cores, 497 items a flush instead of 256.
			runtime.Gosched()
		}
		g.mu.Lock()
		batch, weight := g.queue.take(g.opts.MaxBatch, g.opts.MaxWeight)
		if batch == nil && due == nil {
			g.committers--
			if g.closed && g.committers == 0 {
				close(g.drained)
			}
			ended = true
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
		if batch == nil {
			due.give()
			due = nil
			continue
		}
		for range batch {
			<-g.room
		}
		due = g.run(batch, weight, due)
	}
}

// run flushes one batch and sees to it that each of its slots is answered once, whatever the flush
// does. before are the answers to the batch before, given once this one is under way; its own are
// given at its end, or returned if they may wait.
func (g *Group[Q, R]) run(batch []*slot[Q, R], weight int, before *answers[Q, R]) (due *answers[Q, R]) {
	a := &answers[Q, R]{batch: batch, results: make([]Result[R], len(batch)), stats: Stats{Items: len(batch), Weight: weight}, observe: g.opts.Observe}
	var began time.Time
	if g.opts.Observe != nil {
		began = g.opts.Now()
	}
	fill(a.results, Result[R]{Err: ErrGoexit}) // stands only where the flush took the goroutine with it
	defer func() {
		before.give()
		if g.opts.Observe != nil {
			a.stats.Duration = g.opts.Now().Sub(began)
		}
		if due == nil {
			a.give()
		}
	}()
	if before != nil {
		timer := time.AfterFunc(overlapMax, before.give)
		defer timer.Stop()
	}
	whole, singly, err := g.together(batch, &a.stats.Attempts, before.give)
	a.stats.Err = err
	switch {
	case err == nil:
		copy(a.results, whole)
		if g.mayWait(batch) {
			return a
		}
	case singly:
		g.oneByOne(batch, a.results, err, &a.stats.Singly)
	default:
		fill(a.results, Result[R]{Err: err})
	}
	return nil
}

// together flushes the batch as a whole; singly says that its items are to be tried one by one.
func (g *Group[Q, R]) together(batch []*slot[Q, R], n *int, under func()) (results []Result[R], singly bool, err error) {
	ctx, cancel := g.flushContext()
	if g.opts.MayWait != nil {
		ctx = context.WithValue(ctx, underwayKey{}, under)
	}
	defer cancel()
	defer recoverInto(&err)
	results, err = g.attempts(ctx, batch, n)
	return results, err != nil && len(batch) > 1 && g.singly(err), err
}

// oneByOne gives each item of a batch that failed with cause a flush to itself.
func (g *Group[Q, R]) oneByOne(batch []*slot[Q, R], results []Result[R], cause error, n *int) {
	ctx, cancel := g.flushContext()
	defer cancel()
	attempts := 0
	for i := range batch {
		if ctx.Err() != nil {
			fill(results[i:], Result[R]{Err: fmt.Errorf("coalesce: no time left to retry the item alone (%w) after its batch failed: %w", ctx.Err(), cause)})
			return
		}
		*n++
		single, err := g.attempts(ctx, batch[i:i+1], &attempts)
		if err != nil {
			results[i] = Result[R]{Err: err}
			continue
		}
		results[i] = single[0]
	}
}

// attempts calls the flush until it succeeds, fails for good, or has used its repetitions or its time.
// It returns one result per slot or an error; a panic of the flush or of a hook is such an error.
func (g *Group[Q, R]) attempts(ctx context.Context, batch []*slot[Q, R], n *int) (results []Result[R], err error) {
	defer recoverInto(&err)
	for repetition := 0; ; repetition++ {
		*n++
		results, err = g.call(ctx, batch)
		if err == nil || repetition >= g.opts.Retry.Max || !g.retryable(err) {
			return results, err
		}
		if !sleep(ctx, g.opts.Retry.pause(repetition+1)) {
			return nil, err // of more use than the context's
		}
	}
}

// call runs the flush once, on a copy of the items, and refuses a wrong number of results.
func (g *Group[Q, R]) call(ctx context.Context, batch []*slot[Q, R]) ([]Result[R], error) {
	items := make([]Q, len(batch))
	for i, s := range batch {
		items[i] = s.item
	}
	results, err := g.flush(ctx, items)
	if err == nil && len(results) != len(batch) {
		err = &CountError{Want: len(batch), Got: len(results)}
	}
	return results, err
}

// recoverInto is deferred: it makes a panic the error of the function that defers it.
func recoverInto(err *error) {
	if v := recover(); v != nil {
		*err = &PanicError{Value: v, Stack: debug.Stack()}
	}
}

func (g *Group[Q, R]) flushContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), g.opts.Timeout)
}

func (g *Group[Q, R]) singly(err error) bool {
	return g.opts.RetrySingly != nil && !ours(err) && g.opts.RetrySingly(err)
}

func (g *Group[Q, R]) retryable(err error) bool {
	return g.opts.Retry.Retryable != nil && !ours(err) && !g.singly(err) && g.opts.Retry.Retryable(err)
}

// ours reports a fault of the Flush itself, which says nothing of what it did and is never repeated.
func ours(err error) bool {
	var panicked *PanicError
	var count *CountError
	return errors.As(err, &panicked) || errors.As(err, &count)
}

// sleep reports whether d passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func fill[R any](results []Result[R], with Result[R]) {
	for i := range results {
		results[i] = with
	}
}
