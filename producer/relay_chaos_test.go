package producer_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments"
)

// flakyOutbox fails every third call or so, before or after it has done its work:
// an answer that was lost looks like a failure too.
type flakyOutbox struct {
	*memoryOutbox
	mu  sync.Mutex
	rng *rand.Rand
}

func (o *flakyOutbox) fails() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.rng.IntN(6) == 0
}

var errAway = &payments.Error{Code: payments.CodeUnavailable, Message: "the connection was cut"}

func (o *flakyOutbox) Pending(ctx context.Context, limit int, hold time.Duration) ([]payments.OutboxItem, error) {
	if o.fails() {
		return nil, errAway
	}
	items, err := o.memoryOutbox.Pending(ctx, limit, hold)
	if o.fails() {
		return nil, errAway
	}
	return items, err
}

func (o *flakyOutbox) Sent(ctx context.Context, ids []int64) error {
	if o.fails() {
		return errAway
	}
	err := o.memoryOutbox.Sent(ctx, ids)
	if o.fails() {
		return errAway
	}
	return err
}

// TestRelaysUnderFire runs two relays on one outbox while connections are cut in
// mid-message and the outbox fails, and demands every event in the stream, none
// settled that is not there.
func TestRelaysUnderFire(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{1, 2, 3} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			const n = 3000
			outbox := &flakyOutbox{memoryOutbox: newOutbox(), rng: rand.New(rand.NewPCG(seed, 1))}
			proxy := devstacktest.NewProxy(t, f.url)
			var mu sync.Mutex
			fire := rand.New(rand.NewPCG(seed, 2))
			cuts := 0
			proxy.OnClientData(func(chunk []byte) devstacktest.Action {
				mu.Lock()
				defer mu.Unlock()
				if !bytes.Contains(chunk, []byte("HPUB")) || fire.IntN(8) != 0 || cuts >= 60 {
					return devstacktest.Forward
				}
				cuts++
				return []devstacktest.Action{devstacktest.Cut, devstacktest.ForwardThenCut}[fire.IntN(2)]
			})
			url := devstacktest.Via(t, f.url, proxy.Addr())
			opts := quick()
			opts.MaxQueue, opts.MaxGroup, opts.AckTimeout = 200, 60, 10*time.Second
			first := f.relay(t, outbox, connect(t, url), opts)
			second := f.relay(t, outbox, connect(t, url), opts)
			running(t, first)
			running(t, second)
			for id := int64(1); id <= n; id += 20 {
				items := events(id, 20)
				outbox.add(items...)
				first.Offer(items)
			}
			if err := outbox.await(testContext(t), func(o *memoryOutbox) bool {
				o.now = o.now.Add(time.Second)
				return len(o.rows) == 0
			}); err != nil {
				t.Fatalf("%v; %d left", err, outbox.left())
			}
			f.wantAll(t, 1, n)
			mu.Lock()
			defer mu.Unlock()
			if cuts == 0 {
				t.Error("no connection was cut")
			}
		})
	}
}

// TestIntentsUnderFire runs two relays on the outbox of a lane whose stream is now full
// and now not, while the outbox fails, and demands every intent in the stream, none
// settled that is not there.
func TestIntentsUnderFire(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{1, 2, 3} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			const n = 3000
			stream := f.subjects.StreamBulk()
			items := children(t, 1, n)
			outbox := &flakyOutbox{memoryOutbox: newOutbox(), rng: rand.New(rand.NewPCG(seed, 1))}
			fire := rand.New(rand.NewPCG(seed, 3))
			f.limit(t, stream, 1)
			opts := quickOf(payments.LaneBulk)
			opts.MaxQueue, opts.MaxGroup, opts.Hold = 200, 60, 20*time.Millisecond
			stuck := make(chan struct{}, 1)
			opts.Observer.Stuck = func(string, error) {
				select {
				case stuck <- struct{}{}:
				default:
				}
			}
			first, second := f.relay(t, outbox, connect(t, f.url), opts), f.relay(t, outbox, connect(t, f.url), opts)
			running(t, first)
			running(t, second)
			for at, limit := 0, int64(1); at < n; at += 300 {
				outbox.add(items[at : at+300]...)
				first.Offer(items[at : at+300])
				outbox.passUntil(t, stuck, "the word that the stream is full, or no more")
				limit = min(limit+1+int64(fire.IntN(400)), int64(at+250)) // more than before, and never enough
				f.limit(t, stream, limit)
				outbox.set(func(o *memoryOutbox) { o.now = o.now.Add(time.Hour) })
			}
			f.limit(t, stream, -1)
			if err := outbox.await(testContext(t), func(o *memoryOutbox) bool {
				o.now = o.now.Add(time.Second)
				return len(o.rows) == 0
			}); err != nil {
				t.Fatalf("%v; %d left", err, outbox.left())
			}
			f.wantItems(t, stream, items, n)
		})
	}
}
