package coalesce

import (
	"context"
	"sync"
	"time"
)

// overlapMax is how long answers wait for a flush that does not say that it is under way: one that waits for a connection, say.
const overlapMax = 5 * time.Millisecond

type underwayKey struct{}

// Underway is called by a Flush, with its context, once its request has been sent and there is nothing to do but wait: the waiters of the flush before
// are answered now, if Options.MayWait had them wait, and what they do next goes on beside this flush.
func Underway(ctx context.Context) {
	if tell, ok := ctx.Value(underwayKey{}).(func()); ok {
		tell()
	}
}

// mayWait reports whether the answers to a batch that was flushed may wait. A hook that panics has them given at once.
func (g *Group[Q, R]) mayWait(batch []*slot[Q, R]) (may bool) {
	if g.opts.MayWait == nil {
		return false
	}
	defer func() { may = recover() == nil && may }()
	for _, s := range batch {
		if !g.opts.MayWait(s.item) {
			return false
		}
	}
	return true
}

// answers are the results of one batch, which are given to its waiters once, whoever comes first to do so.
type answers[Q, R any] struct {
	once    sync.Once
	batch   []*slot[Q, R]
	results []Result[R]
	stats   Stats
	observe func(Stats)
}

// give answers whoever waits. nil: nobody does.
func (a *answers[Q, R]) give() {
	if a == nil {
		return
	}
	a.once.Do(func() {
		for i, s := range a.batch {
			s.answer(a.results[i])
		}
		if a.observe != nil {
			a.observe(a.stats)
		}
	})
}
