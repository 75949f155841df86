package producer

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// TestRoomIsNeverOverbooked: many callers with needs of every size, some of whom
// leave; what is inside never exceeds the room, and at the end all of it is free.
func TestRoomIsNeverOverbooked(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 50).Draw(t, "size")
		needs := rapid.SliceOfN(rapid.IntRange(1, 60), 1, 40).Draw(t, "needs")
		leave := rapid.SliceOfN(rapid.Bool(), len(needs), len(needs)).Draw(t, "leave")
		r := newRoom(size, size, nil)
		var inside atomic.Int64
		var all sync.WaitGroup
		for i, need := range needs {
			all.Go(func() {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if leave[i] {
					go cancel()
				}
				taken, err := r.take(ctx, need)
				if err != nil {
					if !leave[i] || taken != 0 {
						t.Errorf("refused: %v, %d", err, taken)
					}
					return
				}
				if now := inside.Add(int64(taken)); now > int64(size) || taken != min(need, size) {
					t.Errorf("%d inside a room of %d; %d of %d taken", now, size, taken, need)
				}
				inside.Add(-int64(taken))
				r.give(taken)
			})
		}
		all.Wait()
		if r.free != size || r.line.Len() != 0 {
			t.Errorf("%d of %d free at the end, %d in line", r.free, size, r.line.Len())
		}
	})
}

// TestRoomIsGivenInOrder: a small caller does not pass a large one, and who leaves
// lets the next one in.
func TestRoomIsGivenInOrder(t *testing.T) {
	t.Parallel()
	closing := make(chan struct{})
	r := newRoom(10, 10, closing)
	taken, _ := r.take(context.Background(), 6)
	wait := func(need int, ctx context.Context) <-chan *Error {
		before := r.queued()
		done := make(chan *Error, 1)
		go func() {
			_, err := r.take(ctx, need)
			done <- err
		}()
		for r.queued() == before {
		}
		return done
	}
	ctx, cancel := context.WithCancel(context.Background())
	large := wait(9, ctx)
	small := wait(2, context.Background())
	third := wait(5, context.Background())
	select {
	case <-small:
		t.Error("the small one has passed the large one")
	default:
	}
	cancel()
	if err := <-large; !errors.Is(err, context.Canceled) || err.kind != ErrNotSent {
		t.Errorf("the large one: %v", err)
	}
	if err := <-small; err != nil {
		t.Errorf("the small one: %v", err)
	}
	r.give(taken)
	if err := <-third; err != nil {
		t.Errorf("the third: %v", err)
	}
	last := wait(10, context.Background())
	close(closing)
	if err := <-last; err.kind != ErrClosed {
		t.Errorf("at the end: %v", err)
	}
}

// TestRoomHasBothBounds: never more messages than it says, nor more bytes.
func TestRoomHasBothBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		bytes, messages := rapid.IntRange(1, 1<<30).Draw(t, "bytes"), rapid.IntRange(1, 1<<20).Draw(t, "messages")
		r := newRoom(bytes, messages, nil)
		if r.least < 1 || r.size > bytes || r.size/r.least > messages || bytes >= messages && r.size/r.least != messages {
			t.Fatalf("%d bytes for %d messages: %+v", bytes, messages, r)
		}
	})
}

func (r *room) queued() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.line.Len()
}
