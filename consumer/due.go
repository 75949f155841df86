package consumer

import (
	"context"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// takeMax bounds one Take; a quarter of the slots does too, so that a Take that hangs leaves slots to others.
const takeMax = 256

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
	alone     chan struct{} // poked when tickets of the lane must be worked on alone
	unclaimed *unclaimed
}

func newDue(w *Worker, l payments.Lane) *due {
	return &due{w: w, lane: l, wake: make(chan struct{}, 1), alone: make(chan struct{}, 1), unclaimed: newUnclaimed()}
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
	d.probe(ctx, work)
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
	if w.held() {
		return false, 0, nil
	}
	limit := min(takeMax, max(1, w.Concurrency/4))
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
	got, err := d.ask(ctx, payments.TakeRequest{Limit: n})
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
	if got.Alone {
		poke(d.alone)
	}
	for _, c := range got.Claims {
		w.spawn(d.lane, forTickets, func(s *slot) { w.settleDue(work, c, s) })
	}
	w.noteInFlight()
	return taken == n, got.Wait, nil
}

// ask asks the store for due tickets of the lane. Accounts whose breaker is open are passed over, unless one of them is asked for.
func (d *due) ask(ctx context.Context, r payments.TakeRequest) (payments.Taking, error) {
	w := d.w
	account, err := w.Processor.Gateway.Account(ctx, "")
	if err != nil {
		if ctx.Err() == nil && w.seldom.now("account of the installation", w.Clock.Now()) {
			w.Log.Warn("due tickets wait: the installation's own Stripe account is not known; it is asked for again", "lane", d.lane.String(), "error", err)
		}
		return payments.Taking{}, err
	}
	r.Lane, r.Lease, r.Account = d.lane, w.Lease, account
	if r.Only == nil {
		r.Except = w.breakers.held()
	}
	got, err := w.Store.Take(ctx, r)
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

// settleDue settles one taken ticket; the caller has entered the gate for it.
func (w *Worker) settleDue(ctx context.Context, c payments.Claim, s *slot) {
	defer func() {
		if v := recover(); v != nil {
			w.panicked(v) // the ticket brings the payment back
		}
	}()
	defer w.tally.begin(c.Lane, c.Payment.TenantID)()
	here := &bystander{w: w, slot: s, inside: true}
	defer here.end()
	w.step(payments.StepAfterTake, c.Payment.ID)
	w.settleFrom(ctx, c, here)
}
