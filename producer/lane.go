package producer

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oncepay/oncepay/payments/coalesce"
)

// lane is the one committer of a stream: several side by side are no faster, and
// each waits longer. Whatever is queued while a group is under way leaves with the
// next.
type lane struct {
	stream  string
	group   *coalesce.Group[[]*nats.Msg, []fate]
	sender  *groupSender
	timeout time.Duration
	closing <-chan struct{}

	calls atomic.Int64
	turn  sync.Mutex // held while a group is under way
}

func newLane(stream string, sender *groupSender, opts Options, closing <-chan struct{}) *lane {
	l := &lane{stream: stream, sender: sender, timeout: opts.AckTimeout, closing: closing}
	l.group = coalesce.New(coalesce.Options[[]*nats.Msg]{
		MaxBatch: opts.MaxGroup, MaxQueue: opts.MaxQueue,
		MaxWeight: opts.MaxGroup, Weight: func(messages []*nats.Msg) int { return len(messages) },
		// A flush bounds itself, once it is its turn.
		Timeout: 3 * opts.AckTimeout,
	}, l.flush)
	return l
}

// do sends the messages together with those of other callers and returns one fate
// for each. While they are queued ctx counts, then no more.
func (l *lane) do(ctx context.Context, messages []*nats.Msg) []fate {
	alone := l.calls.Add(1) == 1
	defer l.calls.Add(-1)
	// A lone message of a lone caller has nobody to wait for, and need not change
	// goroutines twice.
	if alone && len(messages) == 1 && l.turn.TryLock() {
		defer l.turn.Unlock()
		select {
		case <-l.closing:
			return same(1, fate{err: closedError()})
		default:
		}
		return l.sender.lone(context.WithoutCancel(ctx), l.timeout, messages)
	}
	fates, err := l.group.Do(ctx, messages)
	switch {
	case err == nil:
		return fates
	case errors.Is(err, coalesce.ErrClosed):
		return same(len(messages), fate{err: closedError()})
	case errors.Is(err, coalesce.ErrNotFlushed):
		return same(len(messages), fate{err: notSent(ctx)})
	default: // a panic
		return same(len(messages), fate{err: unknown("publishing failed on the way: publish it again under the same key", err)})
	}
}

// flush sends what several callers have queued as one group.
func (l *lane) flush(ctx context.Context, batch [][]*nats.Msg) ([]coalesce.Result[[]fate], error) {
	l.turn.Lock()
	defer l.turn.Unlock()
	messages := batch[0]
	if len(batch) > 1 {
		messages = make([]*nats.Msg, 0, len(batch))
		for _, one := range batch {
			messages = append(messages, one...)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	fates := l.sender.send(ctx, messages)
	results := make([]coalesce.Result[[]fate], len(batch))
	for i, one := range batch {
		results[i].Value, fates = fates[:len(one):len(one)], fates[len(one):]
	}
	return results, nil
}

// close refuses further messages and waits for those that are queued or under way.
func (l *lane) close(ctx context.Context) {
	_ = l.group.Close(ctx)
	l.turn.Lock() // a lone message
	defer l.turn.Unlock()
	l.sender.detach()
}
