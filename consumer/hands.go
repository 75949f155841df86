package consumer

import "sync"

// hands are the goroutines that run handlers. One that is done waits for the next handler instead of ending: a new one would have to grow its
// stack for every payment again (4% of a busy worker's time).
type hands struct {
	running sync.WaitGroup // of handlers, not of goroutines that wait
	mu      sync.Mutex
	idle    []chan func()
	closed  bool
}

// do runs f on a goroutine that is free, or on a new one.
func (h *hands) do(f func()) {
	h.running.Add(1)
	h.mu.Lock()
	if n := len(h.idle); n > 0 {
		next := h.idle[n-1]
		h.idle = h.idle[:n-1]
		h.mu.Unlock()
		next <- f
		return
	}
	h.mu.Unlock()
	next := make(chan func(), 1)
	go h.work(f, next)
}

func (h *hands) work(f func(), next chan func()) {
	for ok := true; ok; f, ok = <-next {
		h.run(f)
		h.mu.Lock()
		if h.closed {
			h.mu.Unlock()
			return
		}
		h.idle = append(h.idle, next)
		h.mu.Unlock()
	}
}

func (h *hands) run(f func()) {
	defer h.running.Done()
	f()
}

// close ends the goroutines that wait; those that are busy end with their handler.
func (h *hands) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, next := range h.idle {
		close(next)
	}
	h.idle = nil
}
