//go:build !race

package tenants

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// stalls measures for how long the machine was too slow for anybody to use a rate: from one look at PostgreSQL to the next passed more time than half a
// bucket holds tokens for. Whoever stands so long with tokens in hand also sends them late, on top of the next.
func (c *crowd) stalls(ctx context.Context) (stalled time.Duration) {
	const halfBucket = 25 * time.Millisecond
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for last := time.Now(); ctx.Err() == nil; {
		<-tick.C
		if c.Store.Ping(ctx) == nil {
			stalled += max(0, time.Since(last)-halfBucket)
			last = time.Now()
		}
	}
	return stalled
}

const (
	paceRate    = 100
	paceLatency = 300 * time.Millisecond
	paceSpan    = 10 * time.Second
)

// pace is what workers made of a rate.
type pace struct {
	perSecond     float64
	calls         int64
	limited       int64 // answered 429
	atOnce        int64 // calls
	tickets       int64 // at most
	machineStood  time.Duration
	ticketsShould int64
}

func (p pace) wrong(busy bool) (found []string) {
	// What a machine that has other work leaves of a rate says nothing about its use: a quarter of it only shows that nobody stands still. What was
	// held up comes late, on top of the next.
	least, limitedMost := 0.97, 0.001
	if busy {
		least, limitedMost = 0.25, 0.05
	}
	if p.perSecond < least*paceRate {
		found = append(found, fmt.Sprintf("%.1f a second, %.1f at least should be", p.perSecond, least*paceRate))
	}
	if float64(p.limited) >= limitedMost*float64(p.calls) {
		found = append(found, fmt.Sprintf("%d of %d were answered 429", p.limited, p.calls))
	}
	if should := paceRate * paceLatency.Seconds() * 1.5; !busy && float64(p.atOnce) > should {
		found = append(found, fmt.Sprintf("%d calls at once, and %v should do", p.atOnce, should))
	}
	if p.tickets > p.ticketsShould {
		found = append(found, fmt.Sprintf("%d tickets, at most %d should be: the backlog was poured into the table", p.tickets, p.ticketsShould))
	}
	return found
}

func measurePace(t *testing.T, workers int) pace {
	c := newCrowd(t, stripesim.Limits{})
	measuring, stop := context.WithCancel(t.Context())
	defer stop()
	stalled := make(chan time.Duration, 1)
	go func() { stalled <- c.stalls(measuring) }()
	for range workers {
		c.work(512, paceRate)
	}
	// What workers ask at their start is no payment, and must not use up what the payments may.
	// Under the race detector single goroutines stand for longer than the bucket's 50 ms, and what they send then comes at once.
	if err := c.Sim.SetLimits(stripesim.Limits{RPS: paceRate, Burst: 10 * world.Scale, LatencyMS: int(paceLatency / time.Millisecond)}); err != nil {
		t.Fatal(err)
	}
	c.backlog(world.Tenant, payments.LaneInteractive, 0, 8000)
	c.awaitDone(world.Tenant, paceRate/2)
	p := pace{ticketsShould: int64(workers * 6 * paceRate)} // of 8,000
	began, before := time.Now(), c.requests.Load()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for time.Since(began) < paceSpan {
		<-tick.C
		tickets, err := c.Store.TicketCount(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p.tickets = max(p.tickets, tickets)
	}
	p.calls, p.limited, p.atOnce = c.requests.Load(), c.limited.Load(), c.most.Load()
	p.perSecond = float64(p.calls-before) / time.Since(began).Seconds()
	stop()
	p.machineStood = <-stalled
	t.Logf("%.1f a second; %d of %d answered 429; at most %d at once; at most %d tickets; the machine stood for %v",
		p.perSecond, p.limited, p.calls, p.atOnce, p.tickets, p.machineStood)
	return p
}

// The whole rate is used and never exceeded, whoever shares it, and no more is in flight than the rate and the calls' time ask for. The backlog
// stays in the stream. Not beside other tests, since it is about time; where the machine stood for longer than half a bucket lasts, it is measured
// again, and at last judged by what a busy machine can have time for.
func TestRateIsUsedAndKept(t *testing.T) {
	for _, workers := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d workers", workers), func(t *testing.T) {
			t.Parallel()
			var p pace
			for attempt := 1; attempt <= 3; attempt++ {
				t.Run(fmt.Sprint(attempt), func(t *testing.T) { p = measurePace(t, workers) })
				if p.machineStood == 0 || len(p.wrong(false)) == 0 {
					break
				}
			}
			for _, finding := range p.wrong(p.machineStood > 0) {
				t.Error(finding)
			}
		})
	}
}

// Repeats of what is settled spend nothing of the rate, and do not wait for it.
func TestRepeatsSpendNoBudget(t *testing.T) {
	t.Parallel()
	const rate, keys, rounds = 20, 50, 200
	c := newCrowd(t, stripesim.Limits{})
	c.work(512, rate)
	c.backlog(world.Tenant, payments.LaneInteractive, 0, keys)
	c.awaitDone(world.Tenant, keys)
	began := time.Now()
	for range rounds {
		c.backlog(world.Tenant, payments.LaneInteractive, 0, keys)
	}
	c.backlog(world.Tenant, payments.LaneInteractive, keys, 1)
	c.awaitDone(world.Tenant, keys+1)
	c.Await("the last ack", func() (bool, string) { return c.Drained(t.Context()) })
	took := time.Since(began)
	t.Logf("%d repeats and one new payment in %v", rounds*keys, took)
	// Had each of them waited for a token it would have taken minutes.
	if n := c.requests.Load(); n != keys+1 || took > rounds*keys/rate*time.Second/3 {
		t.Errorf("%d calls for %d payments, %v", n, keys+1, took)
	}
}
