package consumer

import (
	"context"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// takeMax bounds one Take; a quarter of the slots does too, so that a Take that hangs leaves slots to others.
const takeMax = 256

// aloneMax is how many claims that must be worked on alone are held before no more is taken: after a crash they can be many, and each keeps a slot.
const aloneMax = 8

// Looking for budget. A Take that found too little is followed by the next when there is room again, but begins no sooner than budgetPause to
// twice that after it began: a bucket holds the tokens of a longer time, and several workers that ask together would find one token.
const (
	budgetPause = 10 * time.Millisecond
	doubtEvery  = 500 * time.Millisecond
	doubtsMax   = 16
)

// due works off one lane's due tickets: retries, takeovers, look-ups, payments that were accepted elsewhere or had no budget.
type due struct {
	w         *Worker
	lane      payments.Lane
	wake      chan struct{}
	unclaimed *unclaimed
}

func newDue(w *Worker, l payments.Lane) *due {
	return &due{w: w, lane: l, wake: make(chan struct{}, 1), unclaimed: newUnclaimed()}
}

// wakeUp makes it look at once.
func (d *due) wakeUp() { poke(d.wake) }

// run takes until ctx ends.
func (d *due) run(ctx, work context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
		case <-timer.C:
		}
		pause, next := d.look(ctx, work)
		if pause > 0 && !wait(ctx, pause) {
			return
		}
		timer.Reset(next)
	}
}

// look takes once and says how long to leave the store alone, whoever calls, and when to look again after that.
func (d *due) look(ctx, work context.Context) (pause, next time.Duration) {
	began := d.w.Clock.Now()
	more, room, err := d.take(ctx, work)
	d.w.slots.setHungry(d.lane, forTickets, more)
	switch {
	case err != nil:
		return storePause, d.w.PollInterval
	case more:
		return 0, 0
	case room > 0:
		took := max(0, d.w.Clock.Now().Sub(began)) // tokens have come meanwhile
		pause = max(0, budgetPause+time.Duration(d.w.Random(int64(budgetPause)))-took)
		return pause, max(0, min(room, d.w.PollInterval)-took-pause)
	default:
		return 0, d.w.PollInterval
	}
}

// take takes what is due, starts a goroutine for each claim, and reports whether there may be more, and when accounts without budget have room.
func (d *due) take(ctx, work context.Context) (more bool, room time.Duration, err error) {
	w := d.w
	limit := min(takeMax, max(1, w.Concurrency/4))
	if abandoned := int(w.abandoned.Load()); abandoned > 0 {
		limit = min(limit, aloneMax-abandoned)
	}
	if limit <= 0 {
		return false, 0, nil
	}
	n := w.slots.acquire(ctx, d.lane, forTickets, limit)
	if n == 0 {
		return false, 0, nil
	}
	taken := 0
	defer func() { w.slots.release(d.lane, forTickets, n-taken) }()
	if !w.gate.enter(ctx, n) {
		return false, 0, nil
	}
	defer func() { w.gate.leave(n - taken) }()
	w.step(payments.StepBeforeTake, payments.ID{})
	stored := d.unclaimed.mark()
	got, err := d.ask(ctx, n)
	if err != nil {
		return false, 0, err
	}
	taken = len(got.Claims)
	d.unclaimed.taken(got.Claims)
	if taken < n && got.Wait == 0 {
		d.unclaimed.cleared(stored)
	}
	if taken > 0 && w.Observer.Taken != nil {
		w.Observer.Taken(d.lane, taken)
	}
	for _, c := range got.Claims {
		if c.Abandoned >= payments.AbandonedAlone {
			w.abandoned.Add(1)
		}
		w.spawn(d.lane, forTickets, func() { w.settleDue(work, c) })
	}
	w.noteInFlight()
	return taken == n, got.Wait, nil
}

// ask asks the store for up to n due tickets.
func (d *due) ask(ctx context.Context, n int) (payments.Taking, error) {
	w := d.w
	account, err := w.Processor.Gateway.Account(ctx, "")
	if err != nil {
		if ctx.Err() == nil && w.seldom.now("account of the installation", w.Clock.Now()) {
			w.Log.Warn("due tickets wait: the installation's own Stripe account is not known; it is asked for again", "lane", d.lane.String(), "error", err)
		}
		return payments.Taking{}, err
	}
	got, err := w.Store.Take(ctx, payments.TakeRequest{Lane: d.lane, Limit: n, Lease: w.Lease, Account: account})
	if ctx.Err() == nil {
		w.noteStore(err)
		if err != nil {
			w.Log.Warn("due tickets could not be taken; it is tried again", "lane", d.lane.String(), "error", err)
		}
	}
	return got, err
}

// doubt looks after tickets that wait for long: other processes take them too, and say nothing.
func (d *due) doubt(ctx context.Context) {
	ticker := time.NewTicker(doubtEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for tenant, id := range d.unclaimed.doubtful(doubtsMax) {
			bounded, cancel := context.WithTimeout(ctx, commitTimeout)
			p, err := d.w.Store.Find(bounded, tenant, id)
			cancel()
			switch {
			case err == nil && !untouched(p), payments.ErrorCode(err) == payments.CodeNotFound:
				d.unclaimed.forget(tenant) // a tenant's are given out in turn, and this was the last
			case err != nil && ctx.Err() == nil:
				d.w.noteStore(err)
			}
		}
	}
}

// untouched reports whether nobody has had the payment yet. It asks no clock: PostgreSQL's, which says what is due, may be another.
func untouched(p payments.Payment) bool { return p.Status == payments.StatusReceived && !p.Owned }

// settleDue settles one taken ticket; the caller has entered the gate for it. One that has been abandoned often is worked on alone, since it
// may be what ends the workers, and at last it is given up.
func (w *Worker) settleDue(ctx context.Context, c payments.Claim) {
	defer func() {
		if v := recover(); v != nil {
			w.panicked(v) // the ticket brings the payment back
		}
	}()
	if c.Abandoned >= payments.AbandonedAlone {
		defer w.abandoned.Add(-1)
	}
	defer w.tally.begin(c.Lane, c.Payment.TenantID)()
	leave := func() { w.gate.leave(1) }
	defer func() { leave() }()
	switch {
	case c.Abandoned >= payments.AbandonedMax:
		w.buryPayment(ctx, c, payments.ReasonWorkerKilled, "six workers in turn ended while they had this payment")
		return
	case c.Abandoned >= payments.AbandonedAlone:
		w.gate.leave(1)
		leave = func() {}
		claim, out, ok := w.beAlone(ctx, c)
		if !ok {
			return // somebody else has it, or the ticket brings it back
		}
		c, leave = claim, out
	}
	w.step(payments.StepAfterTake, c.Payment.ID)
	w.settle(ctx, c, time.Time{})
}

// alonePatience is how many leases a payment waits to be alone. Every call of ours but a very long listing ends long before; a handler that is
// still inside then mostly hangs, and must not keep this payment, nor everybody else who waits behind it.
const alonePatience = 3

// beAlone waits until nobody else works in this process, and keeps the lease meanwhile: one that ran out would count as abandoned once more.
// When its patience ends it goes in beside the others. leave gives the place back; without ok there is none to give back.
func (w *Worker) beAlone(ctx context.Context, c payments.Claim) (claim payments.Claim, leave func(), ok bool) {
	ticker := time.NewTicker(w.Lease / 3)
	defer ticker.Stop()
	patience := time.NewTimer(alonePatience * w.Lease)
	defer patience.Stop()
	queued := w.gate.queueAlone()
	leave = func() { w.gate.giveUp(queued) }
	defer func() {
		if !ok {
			leave()
		}
	}()
	for inside := false; !inside; {
		select {
		case <-ctx.Done():
			return c, leave, false
		case <-ticker.C:
		case <-queued.open:
			inside = true
			leave = w.gate.leaveAlone
		case <-patience.C:
			w.Log.Error("a handler in this process hangs, or reads a very long listing; a payment that should be worked on alone is worked on beside it", "payment", c.Payment.ID.String())
			w.gate.giveUp(queued)
			if leave = func() {}; !w.gate.enter(ctx, 1) {
				return c, leave, false
			}
			inside, leave = true, func() { w.gate.leave(1) }
		}
		next, err := w.Store.Extend(ctx, c, w.Lease, false)
		w.noteStore(err)
		switch {
		case err == nil:
			c = next
		case inside || !payments.Retryable(err):
			return c, leave, false
		}
	}
	return c, leave, true
}
