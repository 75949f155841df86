package producer

import (
	"math/rand/v2"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// Defaults that NewRelay puts in the place of options that are zero or negative.
const (
	DefaultRelayGroup   = 1000
	DefaultRelayQueue   = 10_000
	DefaultRelayGather  = 40 * time.Millisecond
	DefaultRelayHold    = 30 * time.Second
	DefaultRelayIdleMin = 250 * time.Millisecond
	DefaultRelayIdleMax = time.Second
	DefaultRelayRetry   = 100 * time.Millisecond
	DefaultRelayRetryTo = 2 * time.Second
	DefaultRelayFinal   = 10 * time.Second
)

const (
	// relayQueueBytes bounds the bodies that wait in memory; relayGroupBytes those
	// that leave together. A larger body still goes, alone.
	relayQueueBytes = 64 << 20
	relayGroupBytes = 8 << 20
	// relayBusy is from how many items on a group was large.
	relayBusy = 20
)

// RelayOptions are the limits of a Relay. The zero value is usable.
type RelayOptions struct {
	// Lane is the lane whose intents the outbox holds; zero: it holds events and
	// copies of dead letters.
	Lane payments.Lane
	// MaxGroup is the largest number of items that leave together.
	MaxGroup int
	// MaxQueue is how many items may wait in memory. What Offer finds no room for
	// is left in the outbox.
	MaxQueue int
	// Gather is how long a busy relay lets the next group fill.
	Gather time.Duration
	// Hold is how long items that were polled are this relay's. It should be
	// longer than AckTimeout; when it runs out they may be sent twice.
	Hold time.Duration
	// AckTimeout bounds the publishing of one group, and one call of Sent.
	AckTimeout time.Duration
	// IdleMin is the pause after a poll that did not fill its limit; it doubles up
	// to IdleMax while polls find nothing.
	IdleMin, IdleMax time.Duration
	// RetryBase is the longest pause after a first failure; it doubles up to
	// RetryCap. The pause itself is random below that (full jitter).
	RetryBase, RetryCap time.Duration
	// FinalTimeout bounds the final pass when Run ends.
	FinalTimeout time.Duration
	// Jitter picks a pause from [0, limit); math/rand unless set.
	Jitter func(limit time.Duration) time.Duration
	// Now is the clock behind ages and durations; time.Now unless set.
	Now func() time.Time
	// Observer is told what happens.
	Observer RelayObserver
}

// RelayObserver receives a relay's metrics; each func may be nil. They are called
// from several goroutines and must not block. Who runs several relays gives each an
// observer of its own.
type RelayObserver struct {
	// Sent is told of items that are stored in the stream and settled in the outbox.
	Sent func(stream string, items int, took time.Duration)
	// Failed is told of items that were not stored for sure, or whose settling
	// failed. They stay in the outbox and are sent again. A poll that failed has
	// no stream and no items.
	Failed func(stream string, items int, err error)
	// Stuck is told once when a stream takes nothing any more, because it is full or
	// away, with the reason, and once when it does again, with nil.
	Stuck func(stream string, err error)
	// Depth is told how many items this relay holds and how long the oldest of
	// them has been with it.
	Depth func(items int, oldest time.Duration)
}

func (o RelayOptions) withDefaults() RelayOptions {
	o.MaxGroup = min(positive(o.MaxGroup, DefaultRelayGroup), atomicMax)
	o.MaxQueue = positive(o.MaxQueue, DefaultRelayQueue)
	o.Gather = positive(o.Gather, DefaultRelayGather)
	o.Hold = positive(o.Hold, DefaultRelayHold)
	o.AckTimeout = positive(o.AckTimeout, DefaultAckTimeout)
	o.IdleMin = positive(o.IdleMin, DefaultRelayIdleMin)
	o.IdleMax = max(positive(o.IdleMax, DefaultRelayIdleMax), o.IdleMin)
	o.RetryBase = positive(o.RetryBase, DefaultRelayRetry)
	o.RetryCap = max(positive(o.RetryCap, DefaultRelayRetryTo), o.RetryBase)
	o.FinalTimeout = positive(o.FinalTimeout, DefaultRelayFinal)
	if o.Jitter == nil {
		o.Jitter = func(limit time.Duration) time.Duration { return rand.N(limit) }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// pause is how long to wait after the n-th failure in a row (from 1).
func (o RelayOptions) pause(n int) time.Duration {
	limit := o.RetryBase
	for i := 1; i < n && limit < o.RetryCap; i++ {
		limit *= 2
	}
	return o.Jitter(min(limit, o.RetryCap))
}

func positive[N int | time.Duration](n, otherwise N) N {
	if n > 0 {
		return n
	}
	return otherwise
}
