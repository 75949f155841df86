package consumer

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// The pace and the bounds of telling that batches are complete.
const (
	// completeEvery is the least time between two calls for hints: what is settled meanwhile is asked about together.
	completeEvery = 100 * time.Millisecond
	// completeAtOnce is how many batches one call, which is one transaction, is asked about: up to 10,000 payments.
	completeAtOnce = 100
	// hintsMax bounds what is remembered. What finds no room the sweep finds.
	hintsMax = 10_000
	// sweepEvery is how often all batches that are not told yet are looked through, in pages of sweepPage with sweepPause between two calls. It
	// rests sweepRest times as long as the calls took, and at most sweepMax, so that a great many of them cost the database little.
	sweepEvery = 10 * time.Second
	sweepPage  = 500
	sweepPause = 20 * time.Millisecond
	sweepRest  = 20
	sweepMax   = 5 * time.Minute
)

// complete tells that batches are complete. Whoever settles a batch's payment to a final status leaves a hint; the store is asked soon after, and
// decides by the set of the batch's payments. A sweep finds what hints cannot tell: payments that became final some other way, and hints that a
// crash has lost. Nothing but the time of the event depends on either.
type complete struct {
	w    *Worker
	wake chan struct{}

	mu    sync.Mutex
	hints map[payments.BatchRef]struct{}
}

func newComplete(w *Worker) *complete {
	return &complete{w: w, wake: make(chan struct{}, 1), hints: map[payments.BatchRef]struct{}{}}
}

// settled leaves a hint if the settlement may have been the last one of a batch.
func (c *complete) settled(s payments.Settlement) {
	p := s.Recorded.Payment
	if s.Err != nil || p.BatchID == "" || !p.Status.Final() {
		return
	}
	id, err := payments.ParseID(p.BatchID)
	if err != nil {
		return // the sweep knows the batch by its own row
	}
	c.hint(payments.BatchRef{TenantID: p.TenantID, ID: id})
}

// hint notes batches that may be complete.
func (c *complete) hint(refs ...payments.BatchRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ref := range refs {
		if len(c.hints) < hintsMax {
			c.hints[ref] = struct{}{}
		}
	}
	poke(c.wake)
}

// hinted takes up to completeAtOnce hints and reports whether that is all.
func (c *complete) hinted() (refs []payments.BatchRef, all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ref := range c.hints {
		if len(refs) == completeAtOnce {
			return refs, false
		}
		refs = append(refs, ref)
		delete(c.hints, ref)
	}
	return refs, true
}

// run asks about what was hinted until ctx ends.
func (c *complete) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		pause := completeEvery
		refs, all := c.hinted()
		err := c.tell(ctx, refs)
		if err != nil {
			c.hint(refs...)
			pause = storePause
		} else if !all {
			poke(c.wake)
		}
		if !wait(ctx, pause) {
			return
		}
	}
}

// last asks about what is hinted once more, when nothing is settled any more. What cannot be told now another worker's sweep finds.
func (c *complete) last(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	for all := false; !all && ctx.Err() == nil; {
		var refs []payments.BatchRef
		refs, all = c.hinted()
		if c.tell(ctx, refs) != nil {
			return
		}
	}
}

// sweep looks through all batches that are not told yet, again and again until ctx ends.
func (c *complete) sweep(ctx context.Context) {
	rest := sweepEvery
	for wait(ctx, rest/2+time.Duration(c.w.Random(int64(rest)))) {
		rest = min(max(sweepEvery, sweepRest*c.sweepOnce(ctx)), sweepMax)
	}
}

// sweepOnce goes through the list once and returns how long the store was busy with it. It ends with the first failure; the next sweep begins anew.
func (c *complete) sweepOnce(ctx context.Context) (busy time.Duration) {
	defer c.w.survive()
	var after payments.BatchRef
	for {
		began := c.w.Clock.Now()
		page, err := c.list(ctx, after)
		busy += c.w.Clock.Now().Sub(began)
		if err != nil {
			return busy
		}
		for refs := range slices.Chunk(page, completeAtOnce) {
			began := c.w.Clock.Now()
			err := c.tell(ctx, refs)
			busy += c.w.Clock.Now().Sub(began)
			if err != nil || !wait(ctx, sweepPause) {
				return busy
			}
		}
		if len(page) < sweepPage {
			return busy
		}
		after = page[len(page)-1]
	}
}

func (c *complete) list(ctx context.Context, after payments.BatchRef) ([]payments.BatchRef, error) {
	bounded, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	page, err := c.w.Batches.OpenBatches(bounded, after, sweepPage)
	c.note(ctx, err)
	return page, err
}

// tell asks the store to tell of those batches that are complete. An error means that it is away, and that asking again will help; what fails for
// another reason is left to the sweep.
func (c *complete) tell(ctx context.Context, refs []payments.BatchRef) (err error) {
	if len(refs) == 0 {
		return nil
	}
	defer c.w.survive()
	bounded, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	told, err := c.w.Batches.CompleteBatches(bounded, refs)
	c.note(ctx, err)
	if told > 0 && c.w.Observer.Completed != nil {
		c.w.Observer.Completed(told)
	}
	if ctx.Err() == nil && !payments.Retryable(err) {
		return nil
	}
	return err
}

// note tells, once in a while, of an error.
func (c *complete) note(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	if c.w.seldom.now("complete batches", c.w.Clock.Now()) {
		c.w.Log.Warn("batches could not be told to be complete; it is tried again", "error", err)
	}
}
