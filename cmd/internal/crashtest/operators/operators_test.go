package operators

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/consumer/deadletter"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// dice are thrown by many.
type dice struct {
	mu     sync.Mutex
	random *rand.Rand
}

func (d *dice) n(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.IntN(n)
}

// bumpy is a Gateway that often obtains no connection. While a call is under way time does not jump: what a request would meet that travels for a
// day is not asked here.
type bumpy struct {
	payments.Gateway
	dice   *dice
	calm   func() bool
	flight *sync.RWMutex
}

func (g bumpy) Submit(ctx context.Context, s payments.Submission) payments.Observation {
	g.flight.RLock()
	defer g.flight.RUnlock()
	if !g.calm() && g.dice.n(3) == 0 {
		return payments.Observation{Kind: payments.ObservedNotSent, Account: payments.Account{ID: s.Payment.StripeAccount, Livemode: s.Payment.Livemode}}
	}
	return g.Gateway.Submit(ctx, s)
}

func (g bumpy) Cancel(ctx context.Context, s payments.Submission) payments.Observation {
	g.flight.RLock()
	defer g.flight.RUnlock()
	return g.Gateway.Cancel(ctx, s)
}

// crew are operators, customers and producers who do whatever they may, at any moment.
type crew struct {
	*world.World
	dice   *dice
	flight sync.RWMutex
	op     payments.Operation

	mu      sync.Mutex
	calm    bool
	orders  []world.Order // published
	left    []world.Order // to be published
	victim  *world.Worker
	killed  int
	rewinds int
	did     map[string]int
}

func (c *crew) isCalm() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calm
}

// hire starts a worker that may stop dead at any step; whoever it leaves behind is taken over.
func (c *crew) hire(mortal bool) *world.Worker {
	o := world.WorkerOptions{
		Name: "healthy", TriesMax: 3, Marked: true, Replays: func(deadletter.Step) bool { return false },
		Gateway: func(g payments.Gateway) payments.Gateway { return bumpy{g, c.dice, c.isCalm, &c.flight} },
	}
	if mortal {
		o.Name, o.Stop = "mortal", func(payments.Step, payments.ID) bool { return c.dice.n(150) == 0 }
		o.Replays = func(deadletter.Step) bool { return c.dice.n(60) == 0 }
	}
	return c.Start(o)
}

// draft makes orders of every kind: charged at once, declined, declined with somebody there, who may yet pay with another card.
func (c *crew) draft(n int) {
	for i := range n {
		o := c.Order(fmt.Sprintf("order-%d", i))
		o.LetGo = true
		if i%2 == 1 {
			o.Lane = payments.LaneBulk
		}
		switch i % 5 {
		case 3:
			o.Method, o.Declines = "pm_card_visa_chargeDeclined", true
		case 4:
			o.Method, o.Present = "pm_card_visa_chargeDeclined", true
		}
		c.left = append(c.left, o)
	}
}

// some is one of the published orders.
func (c *crew) some() (world.Order, payments.Payment, bool) {
	c.mu.Lock()
	all := c.orders
	c.mu.Unlock()
	if len(all) == 0 {
		return world.Order{}, payments.Payment{}, false
	}
	o := all[c.dice.n(len(all))]
	p, err := c.Store.Find(context.Background(), world.Tenant, o.ID())
	return o, p, err == nil
}

// act does one thing.
func (c *crew) act() {
	ctx := context.Background()
	what, done := "", true
	switch n := c.dice.n(100); {
	case n < 30:
		what = "publish"
		c.mu.Lock()
		var o world.Order
		if done = len(c.left) > 0; done {
			o, c.left = c.left[0], c.left[1:]
		}
		c.mu.Unlock()
		if done {
			c.Publish(o)
			c.mu.Lock()
			c.orders = append(c.orders, o)
			c.mu.Unlock()
		}
	case n < 36:
		what = "publish again"
		if o, _, ok := c.some(); ok {
			c.Publish(o)
		}
	case n < 42:
		what = "pause"
		_, err := c.Store.Pause(ctx, payments.Pause{TenantID: []string{world.Tenant, ""}[c.dice.n(2)], Actor: "crew", Reason: "at random"})
		done = err == nil
	case n < 56:
		what = "resume"
		for _, scope := range []string{world.Tenant, ""} {
			_, err := c.Store.Resume(ctx, payments.Pause{TenantID: scope}, c.op)
			done = done && err == nil
		}
	case n < 70:
		what, done = c.resolve(ctx)
	case n < 74:
		what = "discard"
		if o, _, ok := c.some(); ok {
			id := o.ID()
			r, err := c.Store.Discard(ctx, payments.LetterFilter{PaymentID: &id}, 0, c.op)
			done = err == nil && r.Canceled > 0
		}
	case n < 82:
		what = "replay"
		_, err := c.Store.CreateReplay(ctx, payments.NewReplay{Operation: c.op})
		done = err == nil
	case n < 90:
		what = "confirm"
		if o, p, ok := c.some(); ok && o.Present && p.StripePaymentIntent != "" {
			done = c.ConfirmWithAnotherCard(p.StripePaymentIntent) < 300
		} else {
			done = false
		}
	case n < 96:
		what = "jump"
		c.jump([]time.Duration{time.Second, 6 * time.Minute, 2 * time.Hour, 23*time.Hour + 30*time.Minute, 26 * time.Hour}[c.dice.n(5)])
	case n < 98:
		what, done = c.upset(ctx)
	default:
		what = "nothing"
		time.Sleep(time.Duration(c.dice.n(200)) * time.Millisecond)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if done {
		c.did[what]++
	}
}

// resolve decides about some payment what tells no untruth: it was not charged, or will be looked up.
func (c *crew) resolve(ctx context.Context) (what string, done bool) {
	o, p, ok := c.some()
	if !ok {
		return "resolve", false
	}
	as := []payments.Status{payments.StatusUnknown, payments.StatusWaiting, payments.StatusCanceled}[c.dice.n(3)]
	if as == payments.StatusCanceled && (o.Present || p.Status != payments.StatusReceived && p.Status != payments.StatusWaiting) {
		return "resolve", false
	}
	_, err := c.Store.Resolve(ctx, world.Tenant, o.ID(), payments.Decision{As: as}, c.op)
	return "resolve as " + string(as), err == nil
}

func (c *crew) jump(d time.Duration) {
	c.flight.Lock()
	defer c.flight.Unlock()
	c.Clock.Advance(d)
}

// upset kills the mortal worker, or has everything rewound.
func (c *crew) upset(ctx context.Context) (what string, done bool) {
	if c.dice.n(2) == 0 {
		c.mu.Lock()
		done = c.rewinds < 2
		c.rewinds++
		c.mu.Unlock()
		if done {
			_, began, err := c.Store.BeginRewind(ctx, c.Clock.Now().Add(-time.Duration(c.dice.n(120))*time.Minute), c.op)
			done = began && err == nil
		}
		return "rewind", done
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if done = c.killed < 3; done {
		c.killed++
		c.victim.Kill()
		c.victim = c.hire(true)
	}
	return "kill", done
}

// end lets nothing fail any more, and operators take up whatever waits for them until nothing does.
func (c *crew) end() {
	ctx := context.Background()
	c.mu.Lock()
	c.calm = true
	c.victim.Kill()
	c.mu.Unlock()
	c.Sim.ClearFaults()
	for len(c.left) > 0 {
		c.Publish(c.left[0])
		c.orders, c.left = append(c.orders, c.left[0]), c.left[1:]
	}
	c.Await("the end", func() (bool, string) {
		for _, scope := range []string{world.Tenant, ""} {
			if _, err := c.Store.Resume(ctx, payments.Pause{TenantID: scope}, c.op); err != nil {
				return false, err.Error()
			}
		}
		_, _ = c.Store.CreateReplay(ctx, payments.NewReplay{Operation: c.op})
		open, proof := []string{}, time.Duration(0)
		for _, o := range c.orders {
			p, err := c.Store.Find(ctx, world.Tenant, o.ID())
			if err != nil || p.Status.Final() {
				if err != nil {
					open = append(open, err.Error())
				}
				continue
			}
			open = append(open, fmt.Sprintf("%s %s %q owned %v, due %s", o.Key, p.Status, p.Reason, p.Owned, p.NextAttemptAt.Sub(c.Clock.Now())))
			if p.Status == payments.StatusNeedsReview {
				if _, err := c.Store.Resolve(ctx, world.Tenant, p.ID, payments.Decision{As: payments.StatusUnknown}, c.op); err != nil {
					_, _ = c.Store.Resolve(ctx, world.Tenant, p.ID, payments.Decision{As: payments.StatusWaiting}, c.op)
				}
			}
			if p.Status == payments.StatusUnknown {
				proof = max(proof, p.NextAttemptAt.Sub(c.Clock.Now()), untilAbsence(p, c.Clock.Now()))
			}
		}
		if proof > time.Minute { // whatever waits for a proof of absence has it one day
			c.jump(proof + time.Second)
		}
		return len(open) == 0, strings.Join(open, "\n")
	})
}

// untilAbsence is how long a payment that may not be sent any more is looked up before it counts that Stripe does not have it.
func untilAbsence(p payments.Payment, now time.Time) time.Duration {
	if p.FirstSubmitAt.IsZero() || now.Before(p.FirstSubmitAt.Add(payments.ResendWindow)) {
		return 0
	}
	return p.LastSubmitAt.Add(payments.AbsenceAfter).Sub(now)
}

// TestOperatorsAmongFaults: operators pause, resume, resolve, discard, replay and rewind at any moment, customers of declined payments pay with
// another card, clocks jump and workers die, at a Stripe that loses answers. Whatever they do, everybody is charged at most once, and all of it is told.
func TestOperatorsAmongFaults(t *testing.T) {
	t.Parallel()
	world.TakeTurn(t)
	operatorsAmongFaults(t, world.SeedOf(t))
}

func operatorsAmongFaults(t *testing.T, seed uint64) {
	w := world.New(t)
	c := &crew{World: w, dice: &dice{random: rand.New(rand.NewPCG(seed, 1))}, op: payments.Operation{Actor: "crew", Reason: "at random"}, did: map[string]int{}}
	for _, fault := range world.Faults {
		if err := w.Sim.AddFault(stripesim.Rule{Match: stripesim.Match{Path: "/v1/payment_intents"}, Fault: fault, Rate: 0.03}); err != nil {
			t.Fatal(err)
		}
	}
	c.draft(60)
	c.hire(false)
	c.victim = c.hire(true)
	var crowd sync.WaitGroup
	for range 2 {
		crowd.Go(func() {
			for range 300 {
				c.act()
			}
		})
	}
	crowd.Wait()
	t.Logf("they did %v", c.did)
	c.end()
	c.Rest()
	a := c.Account()
	a.Ledger.Requests = slices.DeleteFunc(a.Ledger.Requests, func(r stripesim.Request) bool { return strings.HasSuffix(r.Path, "/confirm") })
	for _, finding := range a.Wrong() {
		t.Error(finding)
	}
}
