package consumer

import (
	"context"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// takeMax bounds one Take.
const takeMax = 256

// takeDue works off due tickets until ctx ends: retries, takeovers, look-ups, payments that were accepted elsewhere.
func (w *Worker) takeDue(ctx, work context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wakeDue:
		case <-timer.C:
		}
		more := false
		for _, l := range []payments.Lane{payments.LaneInteractive, payments.LaneBulk} {
			more = w.takeLane(ctx, work, l) || more
		}
		if more {
			w.WakeDue()
		}
		timer.Reset(w.PollInterval)
		if w.storeAway.Load() && !wait(ctx, time.Second) {
			return
		}
	}
}

// takeLane takes what is due in one lane and reports whether there may be more.
func (w *Worker) takeLane(ctx, work context.Context, l payments.Lane) (more bool) {
	n := w.slots.tryAcquire(l, takeMax)
	if n == 0 {
		return false
	}
	taken := 0
	defer func() { w.slots.release(l, n-taken) }()
	w.step(payments.StepBeforeTake, payments.ID{})
	claims, err := w.Store.Take(ctx, payments.TakeRequest{Lane: l, Limit: n, Lease: w.Lease, Account: w.Processor.Gateway.Account("")})
	if ctx.Err() == nil {
		w.noteStore(err)
	}
	if err != nil {
		if ctx.Err() == nil {
			w.Log.Warn("due tickets could not be taken; it is tried again", "lane", l.String(), "error", err)
		}
		return false
	}
	taken = len(claims)
	if w.Observer.Taken != nil && taken > 0 {
		w.Observer.Taken(l, taken)
	}
	for _, c := range claims {
		w.handlers.Go(func() {
			defer w.slots.release(l, 1)
			w.step(payments.StepAfterTake, c.Payment.ID)
			w.settleDue(work, c)
		})
	}
	return taken == n
}

// settleDue settles one taken ticket. One that has been abandoned too often is given up: it may be what ends the workers.
func (w *Worker) settleDue(ctx context.Context, c payments.Claim) {
	if c.Abandoned >= payments.AbandonedMax {
		w.buryPayment(ctx, c, payments.ReasonWorkerKilled, "six workers in turn ended while they had this payment")
		return
	}
	w.settle(ctx, c, time.Time{})
}
