package coalesce

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkDo keeps 512 callers busy against a flush that takes 2 ms, as a commit does, and against one
// that takes no time at all, where only the group itself is measured.
func BenchmarkDo(b *testing.B) {
	for name, took := range map[string]time.Duration{"flush=0": 0, "flush=2ms": 2 * time.Millisecond} {
		b.Run(name, func(b *testing.B) {
			var flushes atomic.Int64
			g := New(Options[int]{}, func(_ context.Context, batch []int) ([]Result[int], error) {
				flushes.Add(1)
				if took > 0 {
					time.Sleep(took)
				}
				return double(batch), nil
			})
			b.ReportAllocs()
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			for range 512 {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := g.Do(context.Background(), 1); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/float64(flushes.Load()), "items/flush")
		})
	}
}
