package consumer

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// Handlers run once each, beside each other; a hand that is free is used again, and after close none is left, whether it waited or was busy.
func TestHands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // fails when a goroutine is left
		var h hands
		var ran, used atomic.Int64
		for range 50 {
			var begun sync.WaitGroup
			begun.Add(8)
			for range 8 {
				h.do(func() {
					ran.Add(1)
					begun.Done()
					begun.Wait() // would hang if two shared one hand
				})
			}
			h.running.Wait()
			synctest.Wait() // all are free again
			h.mu.Lock()
			used.Store(max(used.Load(), int64(len(h.idle))))
			h.mu.Unlock()
		}
		if ran.Load() != 400 || used.Load() != 8 {
			t.Errorf("%d handlers ran on %d hands", ran.Load(), used.Load())
		}
		busy := make(chan struct{})
		h.do(func() { <-busy })
		h.close()
		late := false
		h.do(func() { late = true }) // as a handler that begins while the worker stops
		close(busy)
		h.running.Wait()
		if !late {
			t.Error("a handler that came late did not run")
		}
	})
}
