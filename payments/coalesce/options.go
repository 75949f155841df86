package coalesce

import (
	"context"
	"math/rand/v2"
	"time"
)

// Defaults that New puts in the place of options that are zero or negative.
const (
	DefaultMaxBatch  = 500
	DefaultMaxQueue  = 4096
	DefaultTimeout   = 30 * time.Second
	DefaultRetryBase = 5 * time.Millisecond
	DefaultRetryCap  = 250 * time.Millisecond
)

// Result is the answer to one item of a flush.
type Result[R any] struct {
	Value R
	Err   error
}

// Flush does the work of one batch and returns exactly one Result per item, in the order of the batch.
// An error means that the batch failed as a whole; the results are then not looked at.
//
// ctx belongs to the flush and ends after Options.Timeout; it carries no values of any waiter. A Flush
// must return when ctx ends, since its waiters wait for it. It may keep batch, but not reorder it before
// the results are matched: sort a copy, or an index.
type Flush[Q, R any] func(ctx context.Context, batch []Q) ([]Result[R], error)

// Options sets the limits of a Group. The zero value is usable.
type Options[Q any] struct {
	// MaxBatch is the greatest number of items in one flush.
	MaxBatch int
	// MaxQueue is the greatest number of items that wait for a flush; Do blocks while it is reached.
	// Items of a flush that has started do not count.
	MaxQueue int
	// Committers is how many flushes may run side by side; 1 unless set.
	Committers int
	// MayWait says of an item that its answer, once it is known, may wait until the next flush is under
	// way (Underway), a few milliseconds at most, if all of its flush may: answered at once, a few
	// hundred waiters keep all cores busy before the next flush gets to its database. For waiters that
	// take a while to come back; such as come back at once are better answered first, for larger
	// flushes. Nil: none may.
	MayWait func(Q) bool
	// Timeout bounds a flush with its repetitions as a whole and the pauses between them. Retrying
	// one by one has the same time once more, so a waiter whose flush has started gets its answer
	// within twice Timeout, provided the Flush obeys its context.
	Timeout time.Duration
	// Weight is the weight of an item in units of the caller's choice (bytes, bind parameters). It runs
	// in the goroutine that calls Do. MaxWeight bounds the sum in one flush; a heavier item goes alone.
	Weight    func(Q) int
	MaxWeight int
	// RetrySingly says that one item's content has failed the whole batch (SQLSTATE classes 22, 23, 21
	// and 54), so that a flush of several items is repeated one item at a time, once.
	RetrySingly func(error) bool
	// Retry says which failures of a whole flush (or of an item that is retried singly) are repeated.
	Retry Retry
	// Observe is told of each flush after its waiters were answered, and waited for: from the
	// committer's goroutine, or with MayWait from another one. It must not panic.
	Observe func(Stats)
	// Now is the clock behind Stats.Duration; time.Now unless set, and unused without Observe.
	Now func() time.Time
}

// Retry repeats a flush that failed as a whole, after a random pause of up to Base, 2*Base, 4*Base …,
// never more than Cap (capped exponential backoff with full jitter).
type Retry struct {
	// Retryable reports whether the error proves that nothing was done and that repeating can help
	// (SQLSTATE 40001, 40P01). Without it nothing is repeated. RetrySingly is asked first.
	Retryable func(error) bool
	// Max is the number of repetitions after the first attempt.
	Max       int
	Base, Cap time.Duration
	// Jitter picks the pause from [0, limit); math/rand unless set.
	Jitter func(limit time.Duration) time.Duration
}

// Stats describes one finished flush.
type Stats struct {
	// Items and Weight are the size of the batch.
	Items, Weight int
	// Attempts is how often the whole batch was tried, at least 1.
	Attempts int
	// Singly is how many items were tried one by one after the batch failed: 0 unless RetrySingly said
	// so. Anything else is a fault to look for, since bounds are to be checked before items are queued.
	Singly int
	// Duration is the time from the start of the flush to its last result.
	Duration time.Duration
	// Err is the error of the batch's last attempt as a whole, nil when it had results for its items.
	Err error
}

func (o Options[Q]) withDefaults() Options[Q] {
	if o.MaxWeight > 0 && o.Weight == nil {
		panic("coalesce: Options.MaxWeight is set without Options.Weight; set both or neither")
	}
	o.MaxBatch = positive(o.MaxBatch, DefaultMaxBatch)
	o.MaxQueue = positive(o.MaxQueue, DefaultMaxQueue)
	o.Committers = positive(o.Committers, 1)
	o.Timeout = positive(o.Timeout, DefaultTimeout)
	o.Retry.Base = positive(o.Retry.Base, DefaultRetryBase)
	o.Retry.Cap = positive(o.Retry.Cap, DefaultRetryCap)
	if o.Retry.Jitter == nil {
		o.Retry.Jitter = func(limit time.Duration) time.Duration { return rand.N(limit) }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func positive[N int | time.Duration](n, otherwise N) N {
	if n > 0 {
		return n
	}
	return otherwise
}

// pause is the wait before repetition n (from 1).
func (r Retry) pause(n int) time.Duration {
	limit := r.Base
	for i := 1; i < n && limit < r.Cap; i++ {
		limit *= 2
	}
	return r.Jitter(min(limit, r.Cap))
}
