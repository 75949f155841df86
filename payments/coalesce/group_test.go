package coalesce

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	errData = errors.New("SQLSTATE 22003")
	errSer  = errors.New("SQLSTATE 40001")
)

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

// double answers each item with twice itself.
func double(batch []int) []Result[int] {
	out := make([]Result[int], len(batch))
	for i, q := range batch {
		out[i].Value = 2 * q
	}
	return out
}

// recorder keeps the batches that reached a flush.
type recorder struct {
	mu      sync.Mutex
	batches [][]int
}

func (r *recorder) add(batch []int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batches = append(r.batches, slices.Clone(batch))
	return len(r.batches)
}

func (r *recorder) all() [][]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.batches)
}

func closeGroup[Q, R any](t *testing.T, g *Group[Q, R]) {
	t.Helper()
	if err := g.Close(context.Background()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// later runs Do in a goroutine of the bubble and returns where the answer will be.
func later[Q, R any](g *Group[Q, R], ctx context.Context, q Q) <-chan Result[R] {
	ch := make(chan Result[R], 1)
	go func() {
		v, err := g.Do(ctx, q)
		ch <- Result[R]{v, err}
	}()
	return ch
}

// held is a group whose first flush waits for release, so that a test can fill the queue behind it.
func held(opts Options[int], flush Flush[int, int]) (g *Group[int, int], rec *recorder, release chan struct{}) {
	rec, release = &recorder{}, make(chan struct{})
	g = New(opts, func(ctx context.Context, batch []int) ([]Result[int], error) {
		if rec.add(batch) == 1 {
			<-release
		}
		if flush == nil {
			return double(batch), nil
		}
		return flush(ctx, batch)
	})
	return g, rec, release
}

func TestQueuedDuringAFlushGoesOutInTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		g, rec, release := held(Options[int]{MaxBatch: 3}, nil)
		answers := make([]<-chan Result[int], 6)
		for i := range answers {
			answers[i] = later(g, ctx, i)
			synctest.Wait()
		}
		if n := g.Len(); n != 5 {
			t.Errorf("Len = %d, want 5 behind the flush", n)
		}
		close(release)
		for i, a := range answers {
			if r := <-a; r.Err != nil || r.Value != 2*i {
				t.Errorf("item %d: %+v", i, r)
			}
		}
		want := "[[0] [1 2 3] [4 5]]"
		if got := fmt.Sprint(rec.all()); got != want {
			t.Errorf("batches %s, want %s", got, want)
		}
		closeGroup(t, g)
	})
}

func TestEqualItemsAreNotMerged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, rec, release := held(Options[int]{}, func(_ context.Context, batch []int) ([]Result[int], error) {
			out := make([]Result[int], len(batch))
			for i := range out {
				out[i].Value = i
			}
			return out, nil
		})
		first := later(g, context.Background(), 0)
		synctest.Wait()
		answers := make([]<-chan Result[int], 3)
		for i := range answers {
			answers[i] = later(g, context.Background(), 7)
			synctest.Wait()
		}
		close(release)
		<-first
		for i, a := range answers {
			if r := <-a; r.Value != i {
				t.Errorf("waiter %d got position %d", i, r.Value)
			}
		}
		if got := fmt.Sprint(rec.all()); got != "[[0] [7 7 7]]" {
			t.Errorf("batches %s", got)
		}
	})
}

func TestWaiterLeavesOnlyWhileQueued(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		flushing, cancelFlushing := context.WithCancel(context.Background())
		queued, cancelQueued := context.WithCancelCause(context.Background())
		g, rec, release := held(Options[int]{}, nil)
		a := later(g, flushing, 1)
		synctest.Wait()
		b := later(g, queued, 2)
		c := later(g, context.Background(), 3)
		synctest.Wait()
		cancelFlushing()
		cause := errors.New("drained")
		cancelQueued(cause)
		r := <-b
		for _, want := range []error{ErrNotFlushed, context.Canceled, cause} {
			if !errors.Is(r.Err, want) {
				t.Errorf("queued waiter: %v does not wrap %v", r.Err, want)
			}
		}
		synctest.Wait()
		select {
		case r := <-a:
			t.Errorf("the waiter of a running flush left with %+v", r)
		default:
		}
		close(release)
		if r := <-a; r.Err != nil || r.Value != 2 {
			t.Errorf("flushed waiter: %+v", r)
		}
		if r := <-c; r.Err != nil || r.Value != 6 {
			t.Errorf("neighbour of the waiter that left: %+v", r)
		}
		if got := fmt.Sprint(rec.all()); got != "[[1] [3]]" {
			t.Errorf("batches %s: an item that left was flushed", got)
		}
	})
}

func TestDoneContextIsRefused(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	g, rec, _ := held(Options[int]{}, nil)
	if _, err := g.Do(ctx, 1); !errors.Is(err, ErrNotFlushed) || !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	if n := len(rec.all()); n != 0 {
		t.Errorf("%d flushes", n)
	}
}

func TestFlushHasItsOwnContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), key{}, 1), time.Second)
		defer cancel()
		g := New(Options[int]{Timeout: 7 * time.Second}, func(ctx context.Context, batch []int) ([]Result[int], error) {
			if ctx.Value(key{}) != nil {
				t.Error("the flush sees a waiter's values")
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		start := time.Now()
		_, err := g.Do(ctx, 1)
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrNotFlushed) {
			t.Errorf("err = %v, want the flush's own deadline", err)
		}
		if d := time.Since(start); d != 7*time.Second {
			t.Errorf("took %v, want 7s", d)
		}
	})
}

func TestFullQueueBlocksWithTheCallersContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, rec, release := held(Options[int]{MaxQueue: 2}, nil)
		bg := context.Background()
		a := later(g, bg, 1)
		synctest.Wait()
		b, c := later(g, bg, 2), later(g, bg, 3)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		if _, err := g.Do(ctx, 4); !errors.Is(err, ErrNotFlushed) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("full queue: %v", err)
		}
		d := later(g, bg, 5)
		synctest.Wait()
		if g.Len() != 2 {
			t.Errorf("Len = %d, want 2", g.Len())
		}
		close(release)
		for i, ch := range []<-chan Result[int]{a, b, c, d} {
			if r := <-ch; r.Err != nil {
				t.Errorf("waiter %d: %v", i, r.Err)
			}
		}
		if n := len(slices.Concat(rec.all()...)); n != 4 {
			t.Errorf("%d items flushed, want 4", n)
		}
	})
}

func TestRoomIsGivenBackByWaitersWhoLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, _, release := held(Options[int]{MaxQueue: 2}, nil)
		a := later(g, context.Background(), 1)
		synctest.Wait()
		for range 100 {
			ctx, cancel := context.WithCancel(context.Background())
			x, y := later(g, ctx, 2), later(g, ctx, 3)
			synctest.Wait()
			cancel()
			<-x
			<-y
		}
		if g.Len() != 0 {
			t.Errorf("Len = %d after all left", g.Len())
		}
		close(release)
		<-a
	})
}

func TestPanicReachesEveryWaiterAndTheGroupLives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		g, _, release := held(Options[int]{RetrySingly: func(error) bool { return true }}, func(_ context.Context, batch []int) ([]Result[int], error) {
			if slices.Contains(batch, 13) {
				panic(boom)
			}
			return double(batch), nil
		})
		first := later(g, context.Background(), 0)
		synctest.Wait()
		x, y := later(g, context.Background(), 13), later(g, context.Background(), 14)
		synctest.Wait()
		close(release)
		<-first
		for _, ch := range []<-chan Result[int]{x, y} {
			var p *PanicError
			r := <-ch
			if !errors.As(r.Err, &p) || !errors.Is(r.Err, boom) || !strings.Contains(string(p.Stack), "group_test.go") {
				t.Errorf("err = %v, want a *PanicError with the stack of the flush", r.Err)
			}
		}
		if v, err := g.Do(context.Background(), 4); v != 8 || err != nil {
			t.Errorf("after the panic: %d, %v", v, err)
		}
		closeGroup(t, g)
	})
}

func TestGoexitReachesEveryWaiterAndTheGroupLives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(Options[int]{}, func(_ context.Context, batch []int) ([]Result[int], error) {
			if batch[0] == 13 {
				runtime.Goexit()
			}
			return double(batch), nil
		})
		if _, err := g.Do(context.Background(), 13); !errors.Is(err, ErrGoexit) {
			t.Errorf("err = %v", err)
		}
		if v, err := g.Do(context.Background(), 4); v != 8 || err != nil {
			t.Errorf("afterwards: %d, %v", v, err)
		}
		closeGroup(t, g)
	})
}

func TestWrongNumberOfResults(t *testing.T) {
	t.Parallel()
	for _, got := range []int{0, 1, 3} {
		g := New(Options[int]{RetrySingly: func(error) bool { return true }}, func(context.Context, []int) ([]Result[int], error) {
			return make([]Result[int], got), nil
		})
		var wrong *CountError
		for _, r := range g.DoAll(context.Background(), []int{1, 2}) {
			if got == 1 && r.Err == nil {
				continue // flushed alone: one result is right
			}
			if !errors.As(r.Err, &wrong) || wrong.Got != got {
				t.Errorf("%d results: %v", got, r.Err)
			}
		}
		closeGroup(t, g)
	}
}

func TestPanicInAHookIsAnError(t *testing.T) {
	t.Parallel()
	hook := func(error) bool { panic("hook") }
	for name, opts := range map[string]Options[int]{
		"RetrySingly": {RetrySingly: hook},
		"Retryable":   {Retry: Retry{Retryable: hook, Max: 1}},
	} {
		g := New(opts, func(context.Context, []int) ([]Result[int], error) { return nil, errData })
		var p *PanicError
		for _, r := range g.DoAll(context.Background(), []int{1, 2, 3}) {
			if !errors.As(r.Err, &p) && !errors.Is(r.Err, errData) { // RetrySingly is not asked about one item
				t.Errorf("%s: %v", name, r.Err)
			}
		}
		closeGroup(t, g)
	}
}

func TestMaxWeight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, rec, release := held(Options[int]{MaxWeight: 10, Weight: func(q int) int { return q }}, nil)
		answers := []<-chan Result[int]{}
		for _, w := range []int{1, 4, 6, 1, 25, 9, 1} {
			answers = append(answers, later(g, context.Background(), w))
			synctest.Wait()
		}
		close(release)
		for _, a := range answers {
			<-a
		}
		if got := fmt.Sprint(rec.all()); got != "[[1] [4 6] [1] [25] [9 1]]" {
			t.Errorf("batches %s", got)
		}
	})
}

func TestNewRefusesImpossibleOptions(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(){
		"no flush": func() { New[int, int](Options[int]{}, nil) },
		"no weight": func() {
			New(Options[int]{MaxWeight: 1}, func(context.Context, []int) ([]Result[int], error) { return nil, nil })
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: New accepted it", name)
				}
			}()
			f()
		}()
	}
}

func TestCommittersFlushSideBySide(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		g := New(Options[int]{Committers: 3, MaxBatch: 1}, func(_ context.Context, batch []int) ([]Result[int], error) {
			n := running.Add(1)
			defer running.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(time.Second)
			return double(batch), nil
		})
		start := time.Now()
		g.DoAll(context.Background(), make([]int, 9))
		if most.Load() != 3 || time.Since(start) != 3*time.Second {
			t.Errorf("%d side by side in %v, want 3 in 3s", most.Load(), time.Since(start))
		}
		closeGroup(t, g)
	})
}

func TestCloseFlushesWhatIsQueuedAndRefusesTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, _, release := held(Options[int]{MaxQueue: 1}, nil)
		bg := context.Background()
		a := later(g, bg, 1)
		synctest.Wait()
		b := later(g, bg, 2)
		synctest.Wait()
		waitsForRoom := later(g, bg, 3)
		synctest.Wait()
		short, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		if err := g.Close(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close during a flush: %v", err)
		}
		if r := <-waitsForRoom; !errors.Is(r.Err, ErrClosed) || !errors.Is(r.Err, ErrNotFlushed) {
			t.Errorf("waiting for room: %v", r.Err)
		}
		closed := make(chan error, 1)
		go func() { closed <- g.Close(bg) }()
		synctest.Wait()
		close(release)
		if err := <-closed; err != nil {
			t.Errorf("Close: %v", err)
		}
		for i, ch := range []<-chan Result[int]{a, b} {
			if r := <-ch; r.Err != nil {
				t.Errorf("waiter %d: %v", i, r.Err)
			}
		}
		if _, err := g.Do(bg, 4); !errors.Is(err, ErrClosed) {
			t.Errorf("Do after Close: %v", err)
		}
		closeGroup(t, g)
	})
}

func TestDoAllKeepsOrderAcrossFlushesAndLeavesWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		g, rec, release := held(Options[int]{MaxBatch: 2, MaxQueue: 3}, nil)
		got := make(chan []Result[int], 1)
		go func() { got <- g.DoAll(ctx, []int{1, 2, 3, 4, 5, 6}) }()
		synctest.Wait() // 1 in the flush, 2-4 queued, 5 waits for room
		cancel()
		synctest.Wait()
		close(release)
		results := <-got
		if results[0].Err != nil || results[0].Value != 2 {
			t.Errorf("item in the flush: %+v", results[0])
		}
		flushed := slices.Concat(rec.all()...)
		for i, r := range results[1:] {
			if out := errors.Is(r.Err, ErrNotFlushed); out == slices.Contains(flushed, i+2) {
				t.Errorf("item %d: %v, flushed %v", i+2, r.Err, flushed)
			}
		}
		items := make([]int, 50)
		for i := range items {
			items[i] = i
		}
		for i, r := range g.DoAll(context.Background(), items) {
			if r.Err != nil || r.Value != 2*i {
				t.Errorf("item %d: %+v", i, r)
			}
		}
		closeGroup(t, g)
	})
}
