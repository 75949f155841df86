package producer_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// memoryOutbox is an Outbox with a clock and failures of its own. It keeps to the
// port's words: who polls holds what it got until the hold runs out.
type memoryOutbox struct {
	mu      sync.Mutex
	now     time.Time
	rows    []payments.OutboxItem
	held    map[int64]time.Time
	polls   int
	settled map[int64]int

	pendingErr, sentErr error
	onSent              func(ids []int64) // before anything is deleted
	changed             chan struct{}
}

func newOutbox(items ...payments.OutboxItem) *memoryOutbox {
	return &memoryOutbox{now: time.Unix(1_800_000_000, 0), rows: slices.Clone(items), held: map[int64]time.Time{}, settled: map[int64]int{}, changed: make(chan struct{})}
}

func (o *memoryOutbox) Pending(_ context.Context, limit int, hold time.Duration) ([]payments.OutboxItem, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.polls++
	defer o.notify()
	if o.pendingErr != nil {
		return nil, o.pendingErr
	}
	var out []payments.OutboxItem
	for _, item := range o.rows {
		if len(out) < limit && !o.held[item.ID].After(o.now) {
			o.held[item.ID] = o.now.Add(hold)
			out = append(out, item)
		}
	}
	return out, nil
}

func (o *memoryOutbox) Sent(_ context.Context, ids []int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.notify()
	if o.onSent != nil {
		o.onSent(ids)
	}
	if o.sentErr != nil {
		return o.sentErr
	}
	for _, id := range ids {
		o.settled[id]++
	}
	o.rows = slices.DeleteFunc(o.rows, func(item payments.OutboxItem) bool { return o.settled[item.ID] > 0 })
	return nil
}

func (o *memoryOutbox) notify() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// set changes the outbox under its lock.
func (o *memoryOutbox) set(change func(*memoryOutbox)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(o)
	o.notify()
}

func (o *memoryOutbox) add(items ...payments.OutboxItem) {
	o.set(func(o *memoryOutbox) { o.rows = append(o.rows, items...) })
}

// commit adds items as a store does that tells its process of them: others are given
// them once the hold is over.
func (o *memoryOutbox) commit(hold time.Duration, items ...payments.OutboxItem) {
	o.set(func(o *memoryOutbox) {
		o.rows = append(o.rows, items...)
		for _, item := range items {
			o.held[item.ID] = o.now.Add(hold)
		}
	})
}

// polled is how often it was asked for items.
func (o *memoryOutbox) polled() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.polls
}

// await returns once the condition holds.
func (o *memoryOutbox) await(ctx context.Context, condition func(*memoryOutbox) bool) error {
	for {
		o.mu.Lock()
		ok, changed := condition(o), o.changed
		o.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// passUntil lets the outbox's time pass, in which what was given to callers that have failed is held, until there is word.
func (o *memoryOutbox) passUntil(tb testing.TB, word <-chan struct{}, what string) {
	tb.Helper()
	ctx := testContext(tb)
	for {
		o.mu.Lock()
		o.now = o.now.Add(time.Second)
		changed := o.changed
		o.mu.Unlock()
		select {
		case <-word:
			return
		case <-changed:
		case <-ctx.Done():
			tb.Fatalf("%s: %v; %d left", what, ctx.Err(), o.left())
		}
	}
}

func (o *memoryOutbox) left() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.rows)
}

func event(id int64) payments.OutboxItem {
	return payments.OutboxItem{
		ID: id, Kind: payments.OutboxEvent, TenantID: "acme", EventType: "oncepay.payment.succeeded",
		EventID: fmt.Sprintf("evt_%d", id), Body: fmt.Appendf(nil, `{"id":"evt_%d"}`, id),
	}
}

func events(from, n int64) []payments.OutboxItem {
	out := make([]payments.OutboxItem, 0, n)
	for id := from; id < from+n; id++ {
		out = append(out, event(id))
	}
	return out
}
