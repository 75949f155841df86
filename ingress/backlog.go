package ingress

import (
	"context"
	"sync"
	"time"

	"github.com/oncepay/oncepay/payments"
)

const (
	backlogFor     = 250 * time.Millisecond
	backlogOld     = 2 * time.Second // what is older is waited for
	backlogTimeout = 2 * time.Second
	backlogRetry   = 5 * time.Second
)

// backlog knows how many accepted rows are not in their streams yet.
type backlog struct {
	count func(context.Context) (int64, error)
	most  int64
	clock payments.Clock

	mu      sync.Mutex
	value   int64
	at      time.Time     // of the value; zero: none yet
	tried   time.Time     // begin of the newest count
	reading chan struct{} // closed when the count that runs ends; nil: none runs
}

func newBacklog(cfg Config) *backlog {
	return &backlog{count: cfg.Unpublished, most: cfg.UnpublishedMax, clock: cfg.Clock}
}

// objection refuses another payment while too much is not published. A count that fails objects to nothing: the store's own answer follows.
func (b *backlog) objection(ctx context.Context) *problem { return b.above(ctx, b.most) }

// batchObjection refuses another batch, somewhat earlier: a file of a million payments that comes faster than its copies are published must not shut the
// door on everybody's checkouts. With the last quarter of the room left to single payments it does not, although the count is a moment old.
func (b *backlog) batchObjection(ctx context.Context) *problem { return b.above(ctx, b.most-b.most/4) }

func (b *backlog) above(ctx context.Context, most int64) *problem {
	if b.count == nil || b.now(ctx) < most {
		return nil
	}
	return unavailable("too many accepted payments wait to be published; repeat the same request under the same key later", backlogRetry, nil)
}

// now is the newest count, at most about backlogFor old while there are requests. One of them counts; the others go on with the last count, unless
// it is old.
func (b *backlog) now(ctx context.Context) int64 {
	now := b.clock.Now()
	b.mu.Lock()
	switch {
	case b.reading == nil && now.Sub(b.tried).Abs() >= backlogFor:
		done := make(chan struct{})
		b.reading, b.tried = done, now
		b.mu.Unlock()
		b.read(ctx, now, done)
		b.mu.Lock()
	case b.reading != nil && now.Sub(b.at).Abs() > backlogOld:
		done := b.reading
		b.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
		}
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	return b.value
}

func (b *backlog) read(ctx context.Context, now time.Time, done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backlogTimeout)
	defer cancel()
	var n int64
	var err error = payments.Errorf(payments.CodeInternal, "the count broke off")
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.reading = nil; err == nil {
			b.value, b.at = n, now
		}
		close(done)
	}()
	n, err = b.count(ctx)
}
