package coalesce

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// steps is a group whose flushes are led by the test: each waits for a step before it says that it is under way, if that step says so, and for another
// one before it ends.
func steps(mayWait func(int) bool) (g *Group[int, int], step chan bool) {
	step = make(chan bool)
	g = New(Options[int]{MayWait: mayWait}, func(ctx context.Context, batch []int) ([]Result[int], error) {
		if batch[0] < 0 {
			runtime.Goexit()
		}
		if <-step {
			Underway(ctx)
		}
		<-step
		return double(batch), nil
	})
	return g, step
}

func always(int) bool { return true }

func answered(c <-chan Result[int]) bool {
	synctest.Wait()
	return len(c) > 0
}

func TestAnswersWaitForTheNextFlush(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mayWait func(int) bool
		waits   bool
	}{
		"all may": {always, true}, "one may not": {func(q int) bool { return q != 1 }, false}, "the hook panics": {func(int) bool { panic("hook") }, false}, "none": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx := context.Background()
				g, step := steps(c.mayWait)
				first := later(g, ctx, 1)
				synctest.Wait()
				second := later(g, ctx, 2)
				synctest.Wait()
				step <- false
				step <- false // the first flush ends, and the second begins
				if answered(first) == c.waits {
					t.Errorf("answered before the next flush is under way: %t", !c.waits)
				}
				step <- true
				if !answered(first) || answered(second) {
					t.Error("a flush is under way, and the one before is not answered, or it is itself")
				}
				step <- false
				if r := <-second; r.Value != 4 || r.Err != nil { // nothing comes after it
					t.Errorf("%+v", r)
				}
				if r := <-first; r.Value != 2 || r.Err != nil {
					t.Errorf("%+v", r)
				}
				closeGroup(t, g)
			})
		})
	}
}

// TestAnswersDoNotWaitLong: a flush that does not say that it is under way, or never will be, keeps nobody.
func TestAnswersDoNotWaitLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		g, step := steps(always)
		first := later(g, ctx, 1)
		synctest.Wait()
		silent := later(g, ctx, 2)
		synctest.Wait()
		step <- false
		step <- false
		began := time.Now()
		if r := <-first; r.Value != 2 || r.Err != nil || time.Since(began) != overlapMax {
			t.Errorf("%+v after %v", r, time.Since(began))
		}
		step <- false
		gone := later(g, ctx, -1)
		synctest.Wait()
		step <- false
		began = time.Now()
		if r := <-silent; r.Value != 4 || r.Err != nil || time.Since(began) != 0 {
			t.Errorf("%+v after %v", r, time.Since(began))
		}
		if r := <-gone; !errors.Is(r.Err, ErrGoexit) {
			t.Errorf("%+v", r)
		}
		closeGroup(t, g)
	})
}
