package consumer

import (
	"context"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// accountsAtOnce is how many accounts a lane looks for a probe at a time, so that hundreds of accounts without a ticket keep nobody waiting.
const accountsAtOnce = 4

// guard gives the worker its circuit breakers: they hear every answer of Stripe.
func (w *Worker) guard() {
	processor := *w.Processor
	w.breakers = newBreakers(processor.TriesMax, processor.Backoff, w.Lease, w.Clock, w.Random, breakerEvents{opened: w.breakerOpened, failed: w.probeFailed, closed: w.breakerClosed})
	told := processor.OnObservation
	processor.OnObservation = func(p payments.Payment, o payments.Observation) {
		w.breakers.observed(p, o)
		if told != nil {
			told(p, o)
		}
	}
	processor.NoTries = w.breakers.holds
	w.Processor = &processor
}

const (
	refusedRemedy = "check ONCEPAY_STRIPE_KEY, or the tenant's own key or connected account"
	troubleRemedy = "check Stripe's status and the network on the way to it; payments are accepted meanwhile, and go on by themselves"
)

func (w *Worker) breakerOpened(a payments.Account, o payments.Observation, pause time.Duration) {
	about := []any{"account", a.ID, "livemode", a.Livemode, "why", o.Detail, "request", o.RequestID, "probe_in", pause}
	if o.Health() == payments.HealthRefused {
		w.Log.Error("Stripe refuses the key of an account: nothing is sent to it until a probe is accepted", append(about, "remedy", refusedRemedy)...)
	} else {
		w.Log.Warn("Stripe is in trouble for an account: nothing is sent to it until a probe is answered", append(about, "remedy", troubleRemedy)...)
	}
	w.observeBreaker(a, true)
}

func (w *Worker) probeFailed(a payments.Account, o payments.Observation, pause time.Duration) {
	if w.seldom.now("probe of "+a.ID, w.Clock.Now()) {
		remedy := troubleRemedy
		if o.Health() == payments.HealthRefused {
			remedy = refusedRemedy
		}
		w.Log.Warn("a probe of a Stripe account failed: nothing else is sent to it", "account", a.ID, "livemode", a.Livemode, "why", o.Detail,
			"request", o.RequestID, "probe_in", pause, "remedy", remedy)
	}
}

func (w *Worker) breakerClosed(a payments.Account, after time.Duration) {
	w.Log.Info("a probe of a Stripe account was answered: its payments go on", "account", a.ID, "livemode", a.Livemode, "after", after.Round(time.Millisecond))
	w.observeBreaker(a, false)
	for _, d := range w.dues {
		d.wakeUp()
	}
}

func (w *Worker) observeBreaker(a payments.Account, open bool) {
	if w.Observer.Breaker != nil {
		w.Observer.Breaker(a, open)
	}
}

// probe sends one due ticket of each account whose breaker's pause is over. Where there is none, the account's next message is the probe.
func (d *due) probe(ctx, work context.Context) {
	for _, a := range d.w.breakers.ready(d.lane, accountsAtOnce) {
		if !d.probeAccount(ctx, work, a) {
			return
		}
	}
}

func (d *due) probeAccount(ctx, work context.Context, a payments.Account) (goOn bool) {
	w := d.w
	if w.slots.acquire(ctx, d.lane, forTickets, 1) == 0 {
		return false
	}
	inside, spawned := w.gate.enter(ctx, 1), false
	pass, ok := w.breakers.enter(a)
	defer func() {
		if spawned {
			return
		}
		pass.end()
		if inside {
			w.gate.leave(1)
		}
		w.slots.release(d.lane, forTickets, 1)
	}()
	if !inside || !ok {
		return inside
	}
	w.step(payments.StepBeforeTake, payments.ID{})
	got, err := d.ask(ctx, payments.TakeRequest{Limit: 1, Only: &a})
	if err != nil || len(got.Claims) == 0 {
		return err == nil
	}
	spawned = true
	d.unclaimed.taken(got.Claims)
	if w.Observer.Taken != nil {
		w.Observer.Taken(d.lane, 1)
	}
	c := got.Claims[0]
	pass.with(c.Payment.ID)
	w.spawn(d.lane, forTickets, func(s *slot) {
		defer pass.end()
		w.settleDue(work, c, s)
	})
	return true
}
