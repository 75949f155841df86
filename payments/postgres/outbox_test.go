package postgres

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

func (b *bench) pending(limit int) []payments.OutboxItem {
	b.t.Helper()
	items, err := b.Pending(context.Background(), limit, time.Minute)
	if err != nil {
		b.t.Fatalf("Pending: %v", err)
	}
	return items
}

// TestOutbox: what is handed to Committed is held back for a while, comes back byte for byte if nobody says that it was sent, and goes for good
// when somebody does.
func TestOutbox(t *testing.T) {
	t.Parallel()
	b := open(t)
	for _, c := range b.claims(3) {
		b.record(c, succeeded(c.Payment), 0)
	}
	b.bury(payments.DeadLetter{Reason: payments.ReasonInvalid, TenantID: "acme", Origin: b.origin(1), Payload: []byte("x")})
	if items := b.pending(10); len(items) != 0 {
		t.Errorf("held back: %d", len(items))
	}
	b.clock.Advance(b.opts.Hold)
	sent, got := b.sent.all(), b.pending(10)
	if len(got) != 4 || len(sent) != 4 {
		t.Fatalf("%d pending, %d handed on, want 4", len(got), len(sent))
	}
	for i, it := range got {
		s := sent[i]
		if it.ID != s.ID || it.EventID != s.EventID || it.EventType != s.EventType || it.TenantID != s.TenantID || it.Kind != s.Kind || !bytes.Equal(it.Body, s.Body) {
			t.Errorf("item %d:\n%+v\n%+v", i, it, s)
		}
		if it.Kind == payments.OutboxEvent {
			e, err := schema.DecodeEvent(it.Body)
			if err != nil || e.ID != it.EventID || e.Type != it.EventType || e.Sequence != 1 || e.TenantID != "acme" {
				t.Errorf("event: %+v, %v", e, err)
			}
		}
	}
	if items := b.pending(10); len(items) != 0 {
		t.Errorf("given out twice: %d", len(items))
	}
	if err := b.Sent(context.Background(), []int64{got[1].ID, got[0].ID}); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(time.Minute)
	if items := b.pending(1); len(items) != 1 || items[0].ID != got[2].ID {
		t.Errorf("the oldest: %+v", items)
	}
	if err := b.Sent(context.Background(), []int64{got[2].ID, got[3].ID}); err != nil {
		t.Fatal(err)
	}
	if n, err := b.OutboxDepth(context.Background()); n != 0 || err != nil {
		t.Errorf("OutboxDepth: %d, %v", n, err)
	}
}

// TestOutboxWithoutHook: where nobody is told of commits, messages are there at once.
func TestOutboxWithoutHook(t *testing.T) {
	t.Parallel()
	b := open(t, func(o *Options) { o.Committed = nil })
	c := b.claim("k")
	b.record(c, succeeded(c.Payment), 0)
	if items := b.pending(10); len(items) != 1 {
		t.Errorf("%d pending", len(items))
	}
}

// TestOutboxRace: pollers share the messages.
func TestOutboxRace(t *testing.T) {
	t.Parallel()
	b := open(t, func(o *Options) { o.Committed = nil })
	var wg sync.WaitGroup
	for _, c := range b.claims(60) {
		wg.Go(func() { b.record(c, succeeded(c.Payment), 0) })
	}
	wg.Wait()
	var mu sync.Mutex
	seen := map[int64]int{}
	for range 6 {
		wg.Go(func() {
			for range 30 {
				items, err := b.Pending(context.Background(), 4, time.Minute)
				if err != nil {
					t.Errorf("Pending: %v", err)
				}
				mu.Lock()
				for _, it := range items {
					seen[it.ID]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%d was given out %d times", id, n)
		}
	}
	if len(seen) != 60 {
		t.Errorf("%d of 60", len(seen))
	}
}
