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

// Whatever is taken and given back: never more than there are, bulk never in the interactive share, nobody waits beside a slot it may have, and
// while both of a lane's sources are hungry neither takes the other's share.
func TestSlotsProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newSlots(rapid.IntRange(ConcurrencyMin, 20).Draw(t, "total"))
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		held := map[payments.Lane]map[source]int{1: {}, 2: {}}
		lane := rapid.SampledFrom([]payments.Lane{payments.LaneInteractive, payments.LaneBulk})
		from := rapid.SampledFrom([]source{forMessages, forTickets})
		inLane := func(l payments.Lane) int { return held[l][forMessages] + held[l][forTickets] }
		t.Repeat(map[string]func(*rapid.T){
			"acquire": func(t *rapid.T) {
				l, f, want := lane.Draw(t, "lane"), from.Draw(t, "source"), rapid.IntRange(1, 30).Draw(t, "want")
				free := s.total - inLane(1) - inLane(2)
				if l == payments.LaneBulk {
					free = min(free, s.total-s.floor-inLane(l))
				}
				expect := min(want, free)
				if s.of(l).hungry[f.other()] {
					share := s.of(l).messages
					if f == forTickets {
						share = 1 - share
					}
					for expect > 0 && float64(held[l][f]+expect) >= share*float64(inLane(l)+free)+1-1e-9 {
						expect--
					}
				}
				if expect <= 0 {
					done, cancel := context.WithCancel(ctx)
					cancel()
					if n := s.acquire(done, l, f, want); n != 0 {
						t.Fatalf("%d slots where none was free", n)
					}
					return
				}
				n := s.acquire(ctx, l, f, want)
				if n != expect {
					t.Fatalf("%d of %d", n, expect)
				}
				held[l][f] += n
			},
			"release": func(t *rapid.T) {
				l, f := lane.Draw(t, "lane"), from.Draw(t, "source")
				n := rapid.IntRange(0, held[l][f]).Draw(t, "n")
				held[l][f] -= n
				s.release(l, f, n)
			},
			"hungry": func(t *rapid.T) {
				s.setHungry(lane.Draw(t, "lane"), from.Draw(t, "source"), rapid.Bool().Draw(t, "hungry"))
			},
			"share": func(t *rapid.T) { s.setShare(lane.Draw(t, "lane"), float64(rapid.IntRange(1, 9).Draw(t, "share"))/10) },
			"": func(t *rapid.T) {
				s.mu.Lock()
				defer s.mu.Unlock()
				bulk := s.of(payments.LaneBulk).inUse()
				if s.used > s.total || s.used != inLane(1)+inLane(2) || bulk != inLane(2) || bulk > s.total-s.floor || len(s.waiting) != 0 {
					t.Fatalf("%+v, held %v", s, held)
				}
			},
		})
	})
}

// A lane whose messages and tickets both want every slot shares them, although its pulls are quick and its Takes are slow; and when one of them
// has nothing more the other has all.
func TestSlotsAreSharedInALane(t *testing.T) {
	t.Parallel()
	for share, messages := range map[float64]float64{0.5: 0.5, 0.25: 0.25} {
		synctest.Test(t, func(t *testing.T) {
			s := newSlots(64)
			s.setShare(payments.LaneInteractive, share)
			ctx, stop := context.WithCancel(context.Background())
			var all sync.WaitGroup
			var mu sync.Mutex
			var used, area [2]float64
			loop := func(f source, between time.Duration) {
				s.setHungry(payments.LaneInteractive, f, true)
				for {
					n := s.acquire(ctx, payments.LaneInteractive, f, 16)
					if n == 0 {
						return
					}
					mu.Lock()
					used[f] += float64(n)
					mu.Unlock()
					time.Sleep(between)
					for i := range n {
						all.Go(func() {
							time.Sleep(100*time.Millisecond + time.Duration(i)*time.Millisecond)
							s.release(payments.LaneInteractive, f, 1)
							mu.Lock()
							used[f]--
							mu.Unlock()
						})
					}
				}
			}
			all.Go(func() { loop(forMessages, time.Millisecond) })
			all.Go(func() { loop(forTickets, 10*time.Millisecond) })
			for range 1000 {
				time.Sleep(5 * time.Millisecond)
				mu.Lock()
				area[forMessages] += used[forMessages]
				area[forTickets] += used[forTickets]
				mu.Unlock()
			}
			total := area[forMessages] + area[forTickets]
			if part := area[forMessages] / total; part < messages-0.1 || part > messages+0.1 || total < 0.9*64*1000 {
				t.Errorf("messages had %.2f of the slots, %.2f were used", part, total/64/1000)
			}
			s.setHungry(payments.LaneInteractive, forTickets, false)
			time.Sleep(time.Second)
			mu.Lock()
			if used[forMessages] < 40 { // tickets go on in their turn
				t.Errorf("messages have %.0f of 64 slots, and nobody else is hungry", used[forMessages])
			}
			mu.Unlock()
			stop()
			all.Wait()
		})
	}
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
