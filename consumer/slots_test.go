package consumer

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/oncepay/oncepay/payments"
)

// Whatever is taken and given back: never more than there are, bulk never in the interactive share, and nobody waits beside a slot it may have.
func TestSlotsProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newSlots(rapid.IntRange(ConcurrencyMin, 20).Draw(t, "total"))
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		held := map[payments.Lane]int{}
		lane := rapid.SampledFrom([]payments.Lane{payments.LaneInteractive, payments.LaneBulk})
		check := func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.used > s.total || s.used < 0 || s.of(payments.LaneBulk).inUse() > s.total-s.floor || s.of(payments.LaneBulk).inUse() < 0 || s.used != held[1]+held[2] || s.of(payments.LaneBulk).inUse() != held[2] || len(s.waiting) != 0 {
				t.Fatalf("%+v, held %v", s, held)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"acquire": func(t *rapid.T) {
				l, want := lane.Draw(t, "lane"), rapid.IntRange(1, 30).Draw(t, "want")
				free := s.total - s.used
				if l == payments.LaneBulk {
					free = min(free, s.total-s.floor-s.of(payments.LaneBulk).inUse())
				}
				if free == 0 {
					done, cancel := context.WithCancel(ctx)
					cancel()
					if n := s.acquire(done, l, forMessages, want); n != 0 {
						t.Fatalf("%d slots where none was free", n)
					}
					return
				}
				n := s.acquire(ctx, l, forMessages, want)
				if n != min(want, free) {
					t.Fatalf("%d of %d free", n, free)
				}
				held[l] += n
			},
			"release": func(t *rapid.T) {
				l := lane.Draw(t, "lane")
				n := rapid.IntRange(0, held[l]).Draw(t, "n")
				held[l] -= n
				s.release(l, forMessages, n)
			},
			"": func(*rapid.T) { check() },
		})
	})
}

// Many wait, some give up; no wake-up is lost and no slot with it.
func TestSlotsUnderStress(t *testing.T) {
	t.Parallel()
	s := newSlots(5)
	var mu sync.Mutex
	used, bulk := 0, 0
	var all sync.WaitGroup
	for i := range 60 {
		l := payments.Lane(i%2 + 1)
		all.Go(func() {
			for round := range 200 {
				ctx, cancel := context.WithCancel(context.Background())
				if (i+round)%7 == 0 {
					go cancel()
				}
				n := s.acquire(ctx, l, source(i/2%2), i%4+1)
				cancel()
				if n == 0 {
					continue
				}
				mu.Lock()
				if used += n; l == payments.LaneBulk {
					bulk += n
				}
				if used > s.total || bulk > s.total-s.floor {
					t.Errorf("%d used, %d of them bulk", used, bulk)
				}
				if used -= n; l == payments.LaneBulk {
					bulk -= n
				}
				mu.Unlock()
				s.release(l, source(i/2%2), n)
			}
		})
	}
	all.Wait()
	if s.inUse() != 0 || s.of(payments.LaneBulk).inUse() != 0 || len(s.waiting) != 0 {
		t.Errorf("left over: %+v", s)
	}
}

// Who waits longest is served first, but nobody waits behind one whose share is used up.
func TestSlotsAreServedInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(4) // floor 1
		ctx, stop := context.WithCancel(context.Background())
		s.acquire(ctx, payments.LaneBulk, forMessages, 3)
		s.acquire(ctx, payments.LaneInteractive, forMessages, 1)
		order := make(chan string, 4)
		ask := func(name string, l payments.Lane) {
			go func() {
				if s.acquire(ctx, l, forMessages, 1) == 1 {
					order <- name
				}
			}()
			synctest.Wait()
		}
		ask("bulk", payments.LaneBulk)
		ask("first", payments.LaneInteractive)
		ask("second", payments.LaneInteractive)
		for _, want := range []string{"first", "second"} {
			s.release(payments.LaneInteractive, forMessages, 1) // bulk may not have it
			if got := <-order; got != want {
				t.Errorf("%s before %s", got, want)
			}
		}
		s.release(payments.LaneBulk, forMessages, 1)
		if got := <-order; got != "bulk" {
			t.Errorf("got %s", got)
		}
		start := time.Now()
		stopped := make(chan int)
		go func() { stopped <- s.acquire(ctx, payments.LaneInteractive, forMessages, 1) }()
		synctest.Wait()
		stop()
		if n := <-stopped; n != 0 || time.Since(start) != 0 || len(s.waiting) != 0 {
			t.Errorf("after the end: %d slots, %d waiting", n, len(s.waiting))
		}
	})
}
