package consumer

import (
	"context"
	"time"

	"github.com/oncepay/oncepay/payments"
)

const (
	// alonePatience is how many leases a worker waits to be alone. Every call of ours but a very long listing ends long before; a handler that is
	// still inside then mostly hangs, and must not keep this payment, nor everybody else who waits behind it.
	alonePatience = 3
	// aloneStint is for how long one ticket after another is worked on before those who wait outside have their turn again: after a crash there can
	// be thousands, and to become alone costs the time of the slowest call that is under way.
	aloneStint = time.Second
)

// workAlone works off the lane's tickets that have been abandoned so often that they may be what ends the workers. Each is worked on alone in the
// process, so that it takes no bystander with it. The worker is alone before it takes one, and works on one at a time: a token that only waited
// would count as abandoned when somebody else ended the process, until an innocent payment was given up for it. While Stripe's records are read
// that is not so (payments.Aside).
func (d *due) workAlone(ctx, work context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.alone:
		}
		if !d.w.roomAside() {
			if !wait(ctx, d.w.PollInterval) {
				return
			}
			poke(d.alone)
			continue
		}
		if d.w.slots.acquire(ctx, d.lane, forTickets, 1) == 0 {
			return
		}
		ended := make(chan bool, 1)
		d.w.spawn(d.lane, forTickets, func(*slot) {
			some := false
			defer func() { ended <- some }()
			defer func() {
				if v := recover(); v != nil {
					d.w.panicked(v) // the ticket brings the payment back
				}
			}()
			some = d.stint(ctx, work)
		})
		some := true
		hung := time.NewTimer(2 * alonePatience * d.w.Lease)
		select {
		case some = <-ended:
		case <-hung.C: // what it has hangs; it is counted as abandoned, and must not keep those behind it
		}
		hung.Stop()
		if !some && !wait(ctx, d.w.PollInterval) {
			return // whatever keeps such tickets from being given should not keep everybody else out
		}
	}
}

// stint waits to be alone and works off tickets until there are no more or it is the others' turn. It reports whether it got any.
func (d *due) stint(ctx, work context.Context) (some bool) {
	w := d.w
	leave, ok := w.beAlone(ctx)
	defer leave()
	for began := w.Clock.Now(); ok && ctx.Err() == nil && !w.held() && w.roomAside(); {
		w.step(payments.StepBeforeTake, payments.ID{})
		got, err := d.ask(ctx, payments.TakeRequest{Limit: 1, Alone: true})
		if err != nil {
			return some
		}
		if len(got.Claims) > 0 && w.Observer.Taken != nil {
			w.Observer.Taken(d.lane, len(got.Claims))
		}
		for _, c := range got.Claims {
			some = true
			d.settleAlone(work, c)
		}
		d.unclaimed.taken(got.Claims)
		if !got.Alone || len(got.Claims) == 0 {
			return some
		}
		if took := w.Clock.Now().Sub(began); took < 0 || took > aloneStint {
			poke(d.alone)
			return some
		}
	}
	return some
}

// settleAlone settles one ticket, or gives it up when it has been abandoned too often. Stripe's records are read aside, together with all others who
// wait for them: the next one is worked on meanwhile, and this one must be alone again for what follows.
func (d *due) settleAlone(ctx context.Context, c payments.Claim) {
	w := d.w
	tallied := w.tally.begin(c.Lane, c.Payment.TenantID)
	if c.Abandoned >= payments.AbandonedMax {
		defer tallied()
		w.buryPayment(ctx, c, payments.ReasonWorkerKilled, "six workers in turn ended while they had this payment")
		return
	}
	w.step(payments.StepAfterTake, c.Payment.ID)
	if payments.Next(c.Payment, w.Clock.Now()) != payments.ActionLook {
		defer tallied()
		w.settle(ctx, c, time.Time{})
		return
	}
	here := &loner{w: w, left: make(chan struct{})}
	w.busy.Add(1)
	w.hands.do(func() {
		defer func() {
			if v := recover(); v != nil {
				w.panicked(v) // the ticket brings the payment back
			}
		}()
		defer w.busy.Add(-1)
		defer tallied()
		defer here.end()
		w.settleFrom(ctx, c, here)
	})
	<-here.left
}

// beAlone waits until nobody else works in this process. When its patience ends it goes in beside the others. leave, never nil, gives the place back.
func (w *Worker) beAlone(ctx context.Context) (leave func(), ok bool) {
	l := &loner{w: w}
	ok = l.Return(ctx)
	return l.end, ok
}
