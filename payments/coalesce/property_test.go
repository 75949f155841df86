package coalesce

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// TestEveryItemOnceAndToItsOwner drives random arrivals, cancellations and failures and checks, for
// each item: an attempt that succeeded holds it once if its waiter was told so; it was in no attempt at
// all if its waiter left; and the answer is its own.
func TestEveryItemOnceAndToItsOwner(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		plan := plan{
			opts: Options[int]{
				MaxBatch:    rapid.IntRange(1, 8).Draw(rt, "batch"),
				MaxQueue:    rapid.IntRange(1, 12).Draw(rt, "queue"),
				Committers:  rapid.IntRange(1, 3).Draw(rt, "committers"),
				Timeout:     time.Second,
				RetrySingly: is(errData),
				Retry:       Retry{Retryable: is(errSer), Max: 2},
			},
			items:   rapid.IntRange(1, 60).Draw(rt, "items"),
			seed:    rapid.Uint64().Draw(rt, "seed"),
			closeAt: time.Duration(rapid.IntRange(0, 200).Draw(rt, "close")) * time.Millisecond,
		}
		if rapid.Bool().Draw(rt, "overlapping") {
			plan.opts.MayWait = func(q int) bool { return q%7 > 0 }
		}
		if rapid.Bool().Draw(rt, "weighted") {
			plan.opts.Weight = func(q int) int { return q % 5 }
			plan.opts.MaxWeight = rapid.IntRange(1, 20).Draw(rt, "weight")
		}
		synctest.Test(t, func(*testing.T) { plan.run(rt) })
	})
}

type plan struct {
	opts    Options[int]
	items   int
	seed    uint64
	closeAt time.Duration
}

// world is what the flushes did.
type world struct {
	mu        sync.Mutex
	rng       *rand.Rand
	seen      map[int]int // attempts that held the item
	committed map[int]int // attempts that held it and succeeded
	errs      []error
}

func (w *world) draw(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

func (w *world) note(m map[int]int, batch []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, q := range batch {
		m[q]++
	}
}

func (w *world) flush(p plan) Flush[int, int] {
	return func(ctx context.Context, batch []int) ([]Result[int], error) {
		w.note(w.seen, batch)
		weight := 0
		for _, q := range batch {
			weight += q % 5
		}
		if len(batch) > p.opts.MaxBatch || p.opts.MaxWeight > 0 && len(batch) > 1 && weight > p.opts.MaxWeight {
			w.mu.Lock()
			w.errs = append(w.errs, errors.New("a batch is over its limits"))
			w.mu.Unlock()
		}
		if w.draw(2) == 0 {
			Underway(ctx)
		}
		time.Sleep(time.Duration(w.draw(10)) * time.Millisecond)
		switch w.draw(12) {
		case 0:
			return nil, errSer
		case 1:
			return nil, errData
		case 2:
			return nil, errors.New("other")
		case 3:
			panic("flush")
		case 4:
			return double(append(batch, 0)), nil
		}
		w.note(w.committed, batch)
		return double(batch), nil
	}
}

func (p plan) run(rt *rapid.T) {
	w := &world{rng: rand.New(rand.NewPCG(p.seed, 1)), seen: map[int]int{}, committed: map[int]int{}}
	g := New(p.opts, w.flush(p))
	answers := make([]Result[int], p.items)
	var wg sync.WaitGroup
	for q := range p.items {
		arrive, patience := w.draw(150), w.draw(40)
		ctx, cancel := context.Background(), context.CancelFunc(func() {})
		wg.Go(func() {
			time.Sleep(time.Duration(arrive) * time.Millisecond)
			if patience < 20 {
				ctx, cancel = context.WithTimeout(ctx, time.Duration(patience)*time.Millisecond)
			}
			defer cancel()
			answers[q].Value, answers[q].Err = g.Do(ctx, q)
		})
	}
	wg.Go(func() {
		time.Sleep(p.closeAt)
		if err := g.Close(context.Background()); err != nil {
			rt.Errorf("Close: %v", err)
		}
		if n := g.Len(); n != 0 {
			rt.Errorf("%d items queued after Close", n)
		}
	})
	wg.Wait()
	for _, err := range w.errs {
		rt.Error(err)
	}
	for q, r := range answers {
		switch {
		case r.Err == nil && (w.committed[q] != 1 || r.Value != 2*q):
			rt.Errorf("item %d: answer %d after %d commits", q, r.Value, w.committed[q])
		case errors.Is(r.Err, ErrNotFlushed) && w.seen[q] != 0:
			rt.Errorf("item %d: its waiter left (%v), yet %d attempts held it", q, r.Err, w.seen[q])
		case r.Err != nil && !errors.Is(r.Err, ErrNotFlushed) && (w.seen[q] == 0 || w.committed[q] != 0):
			rt.Errorf("item %d: failed (%v) with %d attempts, %d commits", q, r.Err, w.seen[q], w.committed[q])
		}
	}
}
