package door

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
)

// repeaters are clients that all repeat the same keys.
type repeaters struct {
	*world.Caller
	parcels []world.Parcel
	addrs   []string

	mu       sync.Mutex
	sent     map[string]int // accepted requests, by key
	answers  int
	settled  int // of those, answered 200
	replayed int
	unknown  int
	refused  int
	marks    map[int]chan struct{}
}

// at is closed with so many accepted answers.
func (c *repeaters) at(n int) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marks[n] = make(chan struct{})
	return c.marks[n]
}

func (c *repeaters) count(p world.Parcel, t world.Tries) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unknown += t.Unknown
	c.refused += t.Refused
	if !t.Accepted() {
		return
	}
	c.sent[p.Key]++
	c.answers++
	if t.Status == 200 {
		c.settled++
	}
	if t.Replayed {
		c.replayed++
	}
	if mark := c.marks[c.answers]; mark != nil {
		close(mark)
	}
}

// client repeats keys at random, at doors at random, some of them waiting for the outcome; the first few are its own turn, so that all clients together
// have sent each key more than once.
func (c *repeaters) client(n, clients int, random *rand.Rand, requests int) {
	turn := 2*len(c.parcels)/clients + 1
	for i := range requests {
		if c.Failed() {
			return
		}
		p, prefer := c.parcels[random.IntN(len(c.parcels))], ""
		if i < turn {
			p = c.parcels[(n*turn+i)%len(c.parcels)]
		}
		if random.IntN(20) == 0 {
			prefer = fmt.Sprintf("wait=%d", 1+random.IntN(3))
		}
		c.count(p, c.Insist(p, prefer, func() string { return c.addrs[random.IntN(len(c.addrs))] }))
	}
}

// TestDoorUnderOutages lets 200 clients repeat the same 500 keys at random, at two processes, while NATS is restarted, PostgreSQL is killed and
// restarted, and NATS is restarted again. There are 500 payments and 500 charges, whatever the clients were told and however often they asked.
func TestDoorUnderOutages(t *testing.T) {
	t.Parallel()
	world.TakeTurn(t)
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	const keys, clients, each = 500, 200, 200 / world.Scale
	w, pg, broker := world.NewFragile(ctx, t, world.OutageTimes)
	seed := world.SeedOf(t)
	c := &repeaters{Caller: w.NewCaller(), sent: map[string]int{}, marks: map[int]chan struct{}{}}
	for i := range keys {
		c.parcels = append(c.parcels, w.Single(fmt.Sprint("order-", i)))
	}
	for range 2 {
		c.addrs = append(c.addrs, w.SpawnDoor().Address())
	}
	total := clients * each
	outages := []struct {
		after <-chan struct{}
		begin func() error
		away  time.Duration
		end   func() error
	}{
		{c.at(total / 100), func() error { broker.Stop(); return nil }, time.Second, broker.Restart},
		{c.at(total / 20), func() error { return pg.Kill(ctx) }, 1500 * time.Millisecond, func() error { return pg.Restart(ctx) }},
		{c.at(total / 2), func() error { return pg.Kill(ctx) }, 0, func() error { return pg.Restart(ctx) }},
		{c.at(3 * total / 4), func() error { broker.Stop(); return nil }, 0, broker.Restart},
	}
	var group sync.WaitGroup
	for i := range clients {
		group.Go(func() { c.client(i, clients, rand.New(rand.NewPCG(seed, uint64(i))), each) })
	}
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	for i, o := range outages {
		select {
		case <-o.after:
		case <-done:
			t.Errorf("outage %d: the clients ended before it", i)
		case <-time.After(2 * world.RestLimit):
			t.Errorf("outage %d: there are no answers any more", i)
		}
		err := o.begin()
		if err == nil {
			world.Pass(ctx, t, o.away)
			err = o.end()
		}
		if err != nil {
			t.Errorf("outage %d: %v", i, err)
		}
	}
	<-done
	c.mu.Lock()
	defer c.mu.Unlock()
	t.Logf("%d accepted answers (%d of them 200, %d repeats), %d answers 503, %d broken connections", c.answers, c.settled, c.replayed, c.refused, c.unknown)
	if c.answers != total || c.settled == 0 || c.refused == 0 || c.replayed < c.answers-2*keys {
		t.Errorf("%d accepted answers, want %d, some of them 200, and some 503", c.answers, total)
	}
	for _, p := range c.parcels {
		if c.sent[p.Key] < 2 {
			t.Errorf("%s was sent %d times: the case shows little", p.Key, c.sent[p.Key])
		}
	}
	a := mustPay(w, 0, c.parcels...)
	for _, p := range a.Payments {
		if p.Status != payments.StatusSucceeded {
			t.Errorf("%s is %s", p.Key, p.Status)
		}
	}
}
