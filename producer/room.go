package producer

import (
	"container/list"
	"context"
	"sync"
)

// room bounds what a Publisher holds. Who finds too little waits in line, so that a
// large group is not overtaken for ever by small ones.
type room struct {
	size int
	// least is the room of the smallest message, so that one bound in bytes is one in
	// messages as well.
	least   int
	closing <-chan struct{}

	mu   sync.Mutex
	free int
	line list.List // of *guest
}

type guest struct {
	need int
	in   chan struct{} // closed when there is room
}

func newRoom(bytes, messages int, closing <-chan struct{}) *room {
	least := max(bytes/messages, 1)
	size := min(bytes, least*messages)
	return &room{size: size, least: least, free: size, closing: closing}
}

// take waits for room of the given size; what is larger than all of it gets all.
// It returns how much to give back.
func (r *room) take(ctx context.Context, need int) (taken int, err *Error) {
	need = min(need, r.size)
	if ctx.Err() != nil {
		return 0, notSent(ctx)
	}
	r.mu.Lock()
	if r.line.Len() == 0 && r.free >= need {
		r.free -= need
		r.mu.Unlock()
		return need, nil
	}
	g := &guest{need: need, in: make(chan struct{})}
	place := r.line.PushBack(g)
	r.mu.Unlock()
	select {
	case <-g.in:
		return need, nil
	case <-ctx.Done():
		err = notSent(ctx)
	case <-r.closing:
		err = closedError()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-g.in: // in the same moment
		r.free += need
	default:
		r.line.Remove(place)
	}
	r.admit()
	return 0, err
}

// give gives room back.
func (r *room) give(taken int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free += taken
	r.admit()
}

// admit lets in who is first in line, as far as there is room. The caller holds mu.
func (r *room) admit() {
	for first := r.line.Front(); first != nil; first = r.line.Front() {
		g := first.Value.(*guest)
		if g.need > r.free {
			return
		}
		r.free -= g.need
		r.line.Remove(first)
		close(g.in)
	}
}
