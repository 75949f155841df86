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

// flowRun is a lane's way of using a flow, with a store that decides after a while and a budget that gives tickets out.
type flowRun struct {
	f         *flow
	u         *unclaimed
	serial    int
	undecided []*pull
	most      int // tickets that waited at once
	holds     int
}

// pullFor pulls for d, messages being decided after delay; room says how many of them found room.
func (r *flowRun) pullFor(d, delay time.Duration, room func() bool) (pulled int) {
	ctx, stop := context.WithTimeout(context.Background(), d)
	defer stop()
	var decided sync.WaitGroup
	defer decided.Wait()
	var mu sync.Mutex
	for {
		allowed := r.f.room(ctx, func() { r.holds++ })
		if allowed == 0 {
			return pulled
		}
		n := min(allowed, 64)
		p := r.f.begin(n, n == allowed, &rest{})
		pulled += n
		decided.Go(func() {
			time.Sleep(delay)
			for range n {
				mu.Lock()
				if room() {
					p.decided(true)
				} else {
					r.serial++
					r.u.add("acme", payments.NewID("acme", key(r.serial)), true)
					r.most = max(r.most, r.u.pulledNow())
					p.decided(false)
				}
				mu.Unlock()
			}
		})
		time.Sleep(time.Millisecond)
	}
}

// takeFor takes tickets at a rate.
func (r *flowRun) takeFor(d time.Duration, perSecond int) {
	for range int(d.Seconds() * float64(perSecond)) {
		time.Sleep(time.Second / time.Duration(perSecond))
		r.u.mu.Lock()
		for id := range r.u.tickets {
			r.u.removeLocked(id)
			break
		}
		r.u.mu.Unlock()
	}
}

// While everything finds room the window is soon as wide as the slots; a backlog without budget leaves about a second's work in the store,
// whatever the rate, and never nothing.
func TestFlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := newUnclaimed()
		r := &flowRun{f: newFlow(systemClock{}, u, 512), u: u}
		if n := r.pullFor(time.Second, 20*time.Millisecond, func() bool { return true }); n < 10_000 || r.f.window != 512 || r.holds != 0 {
			t.Errorf("%d pulled in a second, window %d", n, r.f.window)
		}
	})
	synctest.Test(t, func(t *testing.T) { // the budget ends with the window wide open
		u := newUnclaimed()
		r := &flowRun{f: newFlow(systemClock{}, u, 512), u: u}
		r.pullFor(time.Second, 20*time.Millisecond, func() bool { return true })
		var taker sync.WaitGroup
		taker.Go(func() { r.takeFor(90*time.Second, 20) })
		r.pullFor(89*time.Second, 20*time.Millisecond, func() bool { return false })
		taker.Wait()
		if n := u.all(); n > 3*20 {
			t.Errorf("%d tickets wait at 20 a second, long after the budget ended", n)
		}
	})
	for _, rate := range []int{1, 20, 100, 1000} {
		synctest.Test(t, func(t *testing.T) {
			u := newUnclaimed()
			r := &flowRun{f: newFlow(systemClock{}, u, 512), u: u}
			const span = 30 * time.Second
			var taker sync.WaitGroup
			empty := 0
			taker.Go(func() { r.takeFor(span, rate) })
			taker.Go(func() {
				time.Sleep(5 * time.Second)
				for range int((span - 5*time.Second) / (10 * time.Millisecond)) {
					time.Sleep(10 * time.Millisecond)
					if u.pulledNow() == 0 {
						empty++
					}
				}
			})
			pulled := r.pullFor(span, 20*time.Millisecond, func() bool { return false })
			taker.Wait()
			if most := max(2*rate, 3*flowFirst); r.most > most {
				t.Errorf("at %d a second: %d tickets waited, at most %d should", rate, r.most, most)
			}
			if pulled < rate*int(span.Seconds())-flowFirst || empty > 0 {
				t.Errorf("at %d a second: %d pulled in %v, and %d times nothing was there to take", rate, pulled, span, empty)
			}
		})
	}
}

// Tickets that stand behind many others, as of payments that came over HTTP, keep the lane from pulling for a while each time, and never for good:
// the next message may be another tenant's.
func TestFlowBehindABacklogElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := newUnclaimed()
		f := newFlow(systemClock{}, u, 512)
		serial, holds := 0, 0
		store := func() { // a batch is stored, and nobody takes anything of it
			for range 100 {
				serial++
				u.add("acme", payments.NewID("acme", key(serial)), true)
			}
		}
		store()
		began := time.Now()
		for round := 1; round <= 5; round++ {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			n := f.room(ctx, func() { holds++ })
			cancel()
			if n != 1 || time.Since(began) != time.Duration(round)*holdMost || holds != round {
				t.Fatalf("round %d: %d messages after %v, held %d times", round, n, time.Since(began), holds)
			}
			p := f.begin(n, false, &rest{})
			store()
			p.decided(false)
		}
		u.forget("acme")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if n := f.room(ctx, func() { t.Error("held by nothing") }); n < flowMin || time.Since(began) != 5*holdMost {
			t.Errorf("%d messages when nothing waits any more", n)
		}
	})
}

// Whatever happens, no more is undecided than the window allows, and the window keeps its bounds.
func TestFlowProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 100).Draw(t, "slots")
		u := newUnclaimed()
		f := newFlow(systemClock{}, u, most)
		var open []*pull
		serial := 0
		done, cancel := context.WithCancel(context.Background())
		cancel()
		t.Repeat(map[string]func(*rapid.T){
			"pull": func(t *rapid.T) {
				n, held := f.now()
				if held || n <= 0 {
					return
				}
				n = rapid.IntRange(1, n).Draw(t, "n")
				p := f.begin(n, rapid.Bool().Draw(t, "full"), &rest{})
				absent := rapid.IntRange(0, n).Draw(t, "absent")
				p.absent(absent)
				for range n - absent {
					open = append(open, p)
				}
			},
			"decide": func(t *rapid.T) {
				if len(open) == 0 {
					return
				}
				room := rapid.Bool().Draw(t, "room")
				if !room {
					serial++
					u.add("acme", payments.NewID("acme", key(serial)), true)
				}
				open[0].decided(room)
				open = open[1:]
			},
			"take":  func(*rapid.T) { u.cleared(u.mark()) },
			"held":  func(t *rapid.T) { f.held(time.Duration(rapid.IntRange(-1, 4).Draw(t, "s")) * time.Second) },
			"ended": func(t *rapid.T) { _ = f.room(done, func() {}) },
			"": func(t *rapid.T) {
				if f.undecided != len(open) || f.window > most || f.window < min(flowMin, most) || u.pulledNow() != u.all() {
					t.Fatalf("%d undecided of %d, window %d of %d", f.undecided, len(open), f.window, most)
				}
			},
		})
	})
}
