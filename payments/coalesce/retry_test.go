package coalesce

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// batchOf sends items in one flush: it waits behind a first flush until all are queued.
func batchOf(t *testing.T, opts Options[int], flush Flush[int, int], items ...int) (results []Result[int], batches [][]int, stats Stats) {
	t.Helper()
	opts.Observe = func(s Stats) { stats = s }
	g, rec, release := held(opts, func(ctx context.Context, batch []int) ([]Result[int], error) {
		if batch[0] == -1 {
			return double(batch), nil
		}
		return flush(ctx, batch)
	})
	first := later(g, context.Background(), -1)
	synctest.Wait()
	got := make(chan []Result[int], 1)
	go func() { got <- g.DoAll(context.Background(), items) }()
	synctest.Wait()
	close(release)
	<-first
	results = <-got
	closeGroup(t, g)
	return results, rec.all()[1:], stats
}

func TestOneBadItemIsFoundSingly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		flush := func(_ context.Context, batch []int) ([]Result[int], error) {
			if slices.Contains(batch, 13) {
				return nil, fmt.Errorf("insert: %w", errData)
			}
			return double(batch), nil
		}
		opts := Options[int]{RetrySingly: is(errData), Retry: Retry{Retryable: func(error) bool { return true }, Max: 3}}
		results, batches, stats := batchOf(t, opts, flush, 1, 13, 2, 13)
		for i, q := range []int{1, 13, 2, 13} {
			r := results[i]
			if bad := q == 13; bad != errors.Is(r.Err, errData) || !bad && r.Value != 2*q {
				t.Errorf("item %d: %+v", q, r)
			}
		}
		if got := fmt.Sprint(batches); got != "[[1 13 2 13] [1] [13] [2] [13]]" {
			t.Errorf("flushes %s", got)
		}
		if stats.Items != 4 || stats.Attempts != 1 || stats.Singly != 4 || !errors.Is(stats.Err, errData) {
			t.Errorf("stats %+v", stats)
		}
	})
}

func TestASingleItemIsNotRetriedSingly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		flush := func(context.Context, []int) ([]Result[int], error) { return nil, errData }
		results, batches, stats := batchOf(t, Options[int]{RetrySingly: is(errData)}, flush, 1)
		if len(batches) != 1 || stats.Singly != 0 || !errors.Is(results[0].Err, errData) {
			t.Errorf("%d flushes, %+v, %v", len(batches), stats, results[0].Err)
		}
	})
}

func TestWholeFlushIsRetriedWithGrowingPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		start := time.Now()
		flush := func(_ context.Context, batch []int) ([]Result[int], error) {
			at = append(at, time.Since(start))
			slices.Reverse(batch) // an attempt that spoils its batch must not spoil the next
			if len(at) < 5 {
				return nil, errSer
			}
			slices.Reverse(batch)
			return double(batch), nil
		}
		opts := Options[int]{Retry: Retry{
			Retryable: is(errSer), Max: 4, Base: 10 * time.Millisecond, Cap: 40 * time.Millisecond,
			Jitter: func(limit time.Duration) time.Duration { return limit },
		}}
		results, batches, stats := batchOf(t, opts, flush, 1, 2, 3)
		for i, r := range results {
			if r.Err != nil || r.Value != 2*(i+1) {
				t.Errorf("item %d: %+v", i, r)
			}
		}
		for _, b := range batches {
			if !slices.Equal(b, []int{1, 2, 3}) {
				t.Errorf("an attempt got %v", b)
			}
		}
		ms := time.Millisecond
		if want := []time.Duration{0, 10 * ms, 30 * ms, 70 * ms, 110 * ms}; !slices.Equal(at, want) {
			t.Errorf("attempts at %v, want %v", at, want)
		}
		if stats.Attempts != 5 || stats.Err != nil || stats.Duration != 110*ms || stats.Singly != 0 {
			t.Errorf("stats %+v", stats)
		}
	})
}

func TestRetriesEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err      error
		max      int
		attempts int
	}{
		"used up":       {errSer, 2, 3},
		"none allowed":  {errSer, 0, 1},
		"not retryable": {errors.New("other"), 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				flush := func(context.Context, []int) ([]Result[int], error) { return nil, c.err }
				results, batches, _ := batchOf(t, Options[int]{Retry: Retry{Retryable: is(errSer), Max: c.max}}, flush, 1, 2)
				if len(batches) != c.attempts {
					t.Errorf("%d attempts, want %d", len(batches), c.attempts)
				}
				for _, r := range results {
					if !errors.Is(r.Err, c.err) {
						t.Errorf("err = %v", r.Err)
					}
				}
			})
		})
	}
}

func TestTimeoutBoundsAllAttemptsTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		flush := func(context.Context, []int) ([]Result[int], error) {
			time.Sleep(3 * time.Second)
			return nil, errSer
		}
		opts := Options[int]{Timeout: 10 * time.Second, Retry: Retry{
			Retryable: is(errSer), Max: 1000, Base: 2500 * time.Millisecond, Cap: 2500 * time.Millisecond,
			Jitter: func(limit time.Duration) time.Duration { return limit },
		}}
		results, batches, _ := batchOf(t, opts, flush, 1, 2)
		if d := time.Since(start); d != 10*time.Second || len(batches) != 2 || !errors.Is(results[0].Err, errSer) {
			t.Errorf("%d attempts in %v: %v", len(batches), d, results[0].Err)
		}
	})
}

func TestTimeoutBoundsTheSingles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		flush := func(ctx context.Context, batch []int) ([]Result[int], error) {
			if len(batch) > 1 {
				return nil, errData
			}
			if batch[0] == 2 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return double(batch), nil
		}
		results, batches, stats := batchOf(t, Options[int]{Timeout: 5 * time.Second, RetrySingly: is(errData)}, flush, 1, 2, 3, 4)
		if d := time.Since(start); d != 5*time.Second || len(batches) != 3 || stats.Singly != 2 {
			t.Errorf("%d flushes in %v, %+v", len(batches), d, stats)
		}
		if results[0].Err != nil || results[0].Value != 2 {
			t.Errorf("item done before the time ran out: %+v", results[0])
		}
		for _, r := range results[2:] {
			if !errors.Is(r.Err, errData) || !errors.Is(r.Err, context.DeadlineExceeded) {
				t.Errorf("item that was not reached: %v", r.Err)
			}
		}
	})
}

func TestASingleMayBeRetriedAndAPanicStaysWithItsItem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		serialised := false
		flush := func(_ context.Context, batch []int) ([]Result[int], error) {
			switch {
			case len(batch) > 1:
				return nil, errData
			case batch[0] == 1 && !serialised:
				serialised = true
				return nil, errSer
			case batch[0] == 2:
				panic("two")
			}
			return double(batch), nil
		}
		opts := Options[int]{RetrySingly: is(errData), Retry: Retry{Retryable: is(errSer), Max: 1}}
		results, _, _ := batchOf(t, opts, flush, 1, 2, 3)
		var p *PanicError
		if results[0].Err != nil || !errors.As(results[1].Err, &p) || results[2].Err != nil {
			t.Errorf("results %+v", results)
		}
	})
}

func TestDefaultJitterStaysBelowItsLimit(t *testing.T) {
	t.Parallel()
	r := Options[int]{}.withDefaults().Retry
	for n := 1; n < 100; n++ {
		limit := min(DefaultRetryBase<<min(n-1, 20), DefaultRetryCap)
		if d := r.pause(n); d < 0 || d >= limit {
			t.Fatalf("pause %d = %v, limit %v", n, d, limit)
		}
	}
}
