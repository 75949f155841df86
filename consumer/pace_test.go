package consumer

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// calmRig has leases and calls that nothing in a test outlasts.
func calmRig(t *testing.T, change ...func(*Config)) *rig {
	return newRig(t, append([]func(*Config){func(c *Config) {
		c.Concurrency, c.Lease, c.PollInterval = 64, time.Minute, 200*time.Millisecond
		c.Processor.Lease, c.Processor.CallTimeout = time.Minute, 30*time.Second
	}}, change...)...)
}

// While tickets wait for budget the store is asked for them when there is room, not at the poll interval and not in a loop; every token is used,
// by one worker and by three; and no slot is held meanwhile.
func TestDueUsesTheWholeBudget(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 3} {
		t.Run(strconv.Itoa(workers), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const rate, latency, span = 100, 300 * time.Millisecond, 5 * time.Second
				store, gateway := newFakeStore(), &fakeGateway{}
				store.bucket = &bucket{rate: rate}
				gateway.submit = takes(latency)
				for i := range 1000 {
					store.insert(testIntent(key(i)), payments.LaneInteractive, 0)
				}
				var rigs []*rig
				var stops []func()
				for range workers {
					r := calmRig(t, func(c *Config) { c.Store, c.Processor.Store, c.Processor.Gateway = store, store, gateway })
					rigs = append(rigs, r)
					stops = append(stops, r.startLoops(r.dues[0]))
				}
				most := 0
				for range int(span / (10 * time.Millisecond)) {
					time.Sleep(10 * time.Millisecond)
					synctest.Wait()
					used := 0
					for _, r := range rigs {
						used += r.slots.inUse()
					}
					most = max(most, used)
				}
				looks := store.count("take")
				store.mu.Lock()
				given := store.bucket.given
				store.mu.Unlock()
				if want := rate * span.Seconds(); float64(given) < 0.99*want || float64(given) > want+rate/20+1 {
					t.Errorf("%d given in %v at %d a second", given, span, rate)
				}
				if most := int(span/budgetPause) * workers; looks > most {
					t.Errorf("%d looks, at most %d are of use", looks, most)
				}
				if want := int(rate * latency.Seconds() * 1.5); most > want || gateway.atOnce() > want {
					t.Errorf("%d slots held and %d calls at once; %d would do", most, gateway.atOnce(), want)
				}
				for _, stop := range stops {
					stop()
				}
			})
		})
	}
}

// With a rate below one a second a worker waits for the token itself and looks, as ever, for what else comes due.
func TestDueWithASmallRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := calmRig(t)
		r.store.bucket = &bucket{rate: 0.5}
		for i := range 10 {
			r.store.insert(testIntent(key(i)), payments.LaneInteractive, 0)
		}
		stop := r.startLoops(r.dues[0])
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		if n, looks := r.store.outcomes(), r.store.count("take"); n != 5 || looks > 70 {
			t.Errorf("%d outcomes in 10 s, %d looks", n, looks)
		}
		stop()
	})
}

// Wake-ups while there is no budget do not make it look more often.
func TestDueIsNotDrivenByWakeUps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := calmRig(t)
		r.store.bucket = &bucket{rate: 1}
		for i := range 10 {
			r.store.insert(testIntent(key(i)), payments.LaneInteractive, 0)
		}
		stop := r.startLoops(r.dues[0])
		for range 1000 {
			r.dues[0].wakeUp()
			time.Sleep(time.Millisecond)
		}
		if looks := r.store.count("take"); looks > 105 || looks < 40 {
			t.Errorf("%d looks in a second", looks)
		}
		stop()
	})
}

// What another process has taken of our tickets is found out by asking, a little now and then.
func TestDoubt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := calmRig(t)
		d := r.dues[0]
		taken, waiting := testIntent("taken"), testIntent("waiting")
		waiting.TenantID = "globex"
		gone := payments.NewID("initech", "gone")
		r.store.insert(taken, payments.LaneInteractive, 0)
		r.store.rows[taken.ID()].token = payments.Token{1}
		r.store.insert(waiting, payments.LaneInteractive, 0)
		d.unclaimed.add("acme", payments.NewID("acme", "an earlier one"), true)
		d.unclaimed.add("acme", taken.ID(), true)
		d.unclaimed.add("globex", waiting.ID(), true)
		d.unclaimed.add("initech", gone, false)
		ctx, stop := context.WithCancel(context.Background())
		var loop sync.WaitGroup
		loop.Go(func() { d.doubt(ctx) })
		time.Sleep(10 * doubtEvery)
		synctest.Wait()
		if d.unclaimed.of("acme") != 0 || d.unclaimed.of("globex") != 1 || d.unclaimed.of("initech") != 0 || d.unclaimed.pulledNow() != 1 {
			t.Errorf("%+v", d.unclaimed)
		}
		if n := r.store.count("find"); n > 12 {
			t.Errorf("%d questions", n)
		}
		r.store.setBefore(func(string, payments.ID) error { return errAway })
		d.unclaimed.add("acme", taken.ID(), true)
		time.Sleep(3 * doubtEvery)
		synctest.Wait()
		if d.unclaimed.of("acme") != 1 {
			t.Error("no answer was taken for one")
		}
		stop()
		loop.Wait()
	})
}

// Messages that found no budget wait as tickets, and the lane for them; the message itself is acked. Repeats of it spend nothing.
func TestAdmitWithoutBudget(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.store.bucket = &bucket{rate: 0.001, tokens: 1}
	u := r.dues[0].unclaimed
	for i := range 5 {
		for range 3 {
			msg := newMsg(key(i), 1)
			r.handle(context.Background(), r.from, msg)
			if msg.acks() != 1 {
				t.Errorf("message %d: %d acks", i, msg.acks())
			}
		}
	}
	calls, _ := r.gateway.calls()
	if calls != 1 || r.store.bucket.given != 1 || u.pulledNow() != 4 || len(r.dues[0].wake) != 1 {
		t.Errorf("%d calls, %d given, %d wait", calls, r.store.bucket.given, u.pulledNow())
	}
	r.store.bucket.tokens = 1
	if more, room, err := r.dues[0].take(context.Background(), context.Background()); more || room == 0 || err != nil || u.pulledNow() != 3 {
		t.Errorf("%d wait after one was taken, %v", u.pulledNow(), err)
	}
	r.hands.running.Wait()
	r.store.bucket = nil
	if _, room, err := r.dues[0].take(context.Background(), context.Background()); room != 0 || err != nil || u.pulledNow() != 0 {
		t.Errorf("%d wait after all were taken, %v", u.pulledNow(), err)
	}
	u.add("acme", payments.NewID("acme", "somebody else's"), true)
	if _, _, err := r.dues[0].take(context.Background(), context.Background()); err != nil || u.pulledNow() != 0 {
		t.Errorf("%d wait, and nothing is due: %v", u.pulledNow(), err)
	}
	r.hands.running.Wait()
	r.hands.close()
}

// A tenant whose account is not known is told of once, not for each message; its payments are stored and nobody owns them.
func TestUnknownAccountIsToldSeldom(t *testing.T) {
	t.Parallel()
	log := &buffer{}
	r := newRig(t, logTo(log))
	r.Processor.Gateway = strangers{r.gateway}
	for i := range 20 {
		msg := newMsg(key(i), 1)
		r.handle(context.Background(), r.from, msg)
		if msg.acks() != 1 {
			t.Errorf("message %d: %d acks", i, msg.acks())
		}
	}
	if calls, _ := r.gateway.calls(); calls != 0 || len(r.store.rows) != 20 || lines(log.String(), "tenant=acme") != 1 {
		t.Errorf("%d calls, %d rows, log:\n%s", calls, len(r.store.rows), log)
	}
	for id, row := range r.store.rows {
		if !row.token.IsZero() || !row.ticket {
			t.Errorf("%s: %+v", id, row)
		}
	}
	if _, _, err := r.dues[0].take(context.Background(), context.Background()); err == nil || lines(log.String(), "lane=interactive") != 1 {
		t.Errorf("%v, log:\n%s", err, log)
	}
}

// strangers is a gateway that does not know anybody's account.
type strangers struct{ *fakeGateway }

func (strangers) Account(context.Context, string) (payments.Account, error) {
	return payments.Account{}, payments.Errorf(payments.CodeUnavailable, "Stripe is away")
}

func lines(text, with string) (n int) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, with) {
			n++
		}
	}
	return n
}
