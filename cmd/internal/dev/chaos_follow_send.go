package dev

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/payments"
)

// Bounds of those who carry out plans.
const (
	plansAtOnce = 128              // most of the time each waits for its payment
	unheardMax  = 10 * time.Second // for a payment that was acknowledged to nobody: it may be lost
)

// followAll carries out all plans, and returns when each is done, or when ctx ends.
func (c *chaosRun) followAll(ctx context.Context, began time.Time) {
	nc, js, err := app.ConnectNATS(ctx, c.producing, "oncepay-chaos-follower", app.NewLog(c.log("producers"), "error"))
	if err != nil {
		c.book.find("those who capture, cancel and refund found no NATS: %v", err)
		return
	}
	defer nc.Close()
	var flying sync.WaitGroup
	defer flying.Wait()
	room := make(chan struct{}, plansAtOnce)
	for _, p := range c.work.plans {
		if !pause(ctx, time.Until(began.Add(p.at))) {
			return
		}
		room <- struct{}{}
		flying.Go(func() {
			defer func() { <-room }()
			c.carryOut(ctx, js, p)
		})
	}
}

// carryOut waits for a plan's payment and asks for what is planned. A plan whose payment comes to stand otherwise is dropped: nothing was asked for.
func (c *chaosRun) carryOut(ctx context.Context, js jetstream.JetStream, p *plan) {
	stands := c.awaitStanding(ctx, p)
	for _, group := range p.groups {
		var all sync.WaitGroup
		for _, m := range group {
			if !stands {
				c.delivered.Add(1)
				continue
			}
			all.Go(func() {
				done := false
				if c.book.ask(m.ask); m.subject != "" {
					done = c.publish(ctx, js, *m)
				} else {
					done = c.request(ctx, m)
				}
				if !done {
					c.book.find("%s was not accepted although all was healed", m.key)
					return
				}
				c.delivered.Add(1)
			})
		}
		all.Wait()
	}
}

// awaitStanding reads a plan's payment until it stands as the plan wants it; false when it never will, for all that is known now.
func (c *chaosRun) awaitStanding(ctx context.Context, p *plan) bool {
	id, began := payments.NewID(demoTenant, c.work.intents[p.intent].Key).String(), time.Now()
	for door := p.intent; ctx.Err() == nil; door++ {
		found, now, err := c.show(ctx, c.doors[door%len(c.doors)], id)
		switch {
		case err == nil && !found && !c.book.knows(p.intent) && time.Since(began) > unheardMax:
			return false
		case err != nil || !found:
		case p.want == "" || now == p.want:
			return true
		case now.Settled(), now == payments.StatusStalled, now == payments.StatusNeedsReview:
			return false
		}
		if !pause(ctx, 150*time.Millisecond+rand.N(350*time.Millisecond)) {
			return false
		}
	}
	return false
}

// show reads a payment over HTTP: found is false when there is none.
func (c *chaosRun) show(ctx context.Context, addr, id string) (found bool, now payments.Status, err error) {
	status, a, err := c.exchange(ctx, http.MethodGet, addr, &delivery{path: "/v1/payments/" + id})
	word, _ := a.Status.(string)
	if err == nil && status != http.StatusOK && status != http.StatusNotFound {
		err = fmt.Errorf("%s was answered %d", id, status)
	}
	return status == http.StatusOK, payments.Status(word), err
}
