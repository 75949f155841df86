package consumer

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// longListing is a listing that everybody reads until it is released, and that shows every payment then.
type longListing struct {
	readers  atomic.Int32
	released chan struct{}
}

func (r *rig) longListing() *longListing {
	l := &longListing{released: make(chan struct{})}
	r.gateway.look = func(ctx context.Context, p payments.Payment) payments.Observation {
		l.readers.Add(1)
		select {
		case <-l.released:
		case <-ctx.Done():
		}
		return payments.Observation{Kind: payments.ObservedRecords, Account: testAccount, Found: []payments.PaymentIntent{{
			ID: "pi_" + p.ID.Hex(), Status: payments.StripeSucceeded, Amount: p.Amount, AmountReceived: p.Amount, Currency: p.Currency, Customer: p.Customer,
		}}}
	}
	return l
}

// inDoubt stores payments whose send had no definite answer.
func (r *rig) inDoubt(n, abandoned int) (ids []payments.ID) {
	for i := range n {
		id := r.store.insert(testIntent("doubt"+strconv.Itoa(i)), payments.LaneInteractive, abandoned)
		r.store.mu.Lock()
		p := &r.store.rows[id].payment
		p.Status, p.InDoubt, p.FirstSubmitAt, p.LastSubmitAt = payments.StatusUnknown, true, time.Now(), time.Now()
		r.store.mu.Unlock()
		ids = append(ids, id)
	}
	return ids
}

// Stripe's records can be a listing of hundreds of pages. As many payments as there are slots wait for it, and nobody who sends waits for them.
func TestLookUpsLeaveTheirSlotsToSends(t *testing.T) {
	t.Parallel()
	const slots = 4
	r := newRig(t, func(c *Config) { c.Concurrency = slots })
	listing := r.longListing()
	doubtful := r.inDoubt(slots, 0)
	stop := r.startDue()
	waitFor(t, "all look-ups", func() bool { return listing.readers.Load() == slots })
	waitFor(t, "their slots", func() bool { return r.slots.inUse() == 0 })
	for i := range 20 {
		r.store.insert(testIntent("k"+strconv.Itoa(i)), payments.LaneInteractive, 0)
	}
	waitFor(t, "the outcomes of those who send", func() bool { return r.store.outcomes() == 20 })
	close(listing.released)
	waitFor(t, "all outcomes", func() bool { return r.store.outcomes() == 20+slots })
	stop()
	for _, id := range doubtful {
		if s := r.store.status(id); s != payments.StatusSucceeded {
			t.Errorf("a payment that was looked up is %s", s)
		}
	}
	if r.slots.inUse() != 0 || r.gate.inside != 0 || len(r.looking) != 0 {
		t.Errorf("left over: %d slots, %d places, %d who look", r.slots.inUse(), r.gate.inside, len(r.looking))
	}
}

// Where more look up than there are slots, the rest keep the slots they have: what is in flight stays bounded.
func TestLookUpsAreBounded(t *testing.T) {
	t.Parallel()
	const slots = 4
	r := newRig(t, func(c *Config) { c.Concurrency = slots })
	listing := r.longListing()
	r.inDoubt(3*slots, 0)
	stop := r.startDue()
	waitFor(t, "as many as may", func() bool { return listing.readers.Load() == 2*slots })
	if owned := r.store.owned(); owned != 2*slots {
		t.Errorf("%d payments are in flight, want %d", owned, 2*slots)
	}
	close(listing.released)
	waitFor(t, "all outcomes", func() bool { return r.store.outcomes() == 3*slots })
	stop()
}

// Payments that may be what ends the workers are looked up beside others, all at once: should the process end meanwhile, that counts for none of
// them. For what follows each is alone, and counts as before.
func TestSuspectsAreLookedUpAside(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	listing := r.longListing()
	suspects := r.inDoubt(5, payments.AbandonedAlone+1)
	var busy atomic.Int32
	r.store.setBefore(func(verb string, id payments.ID) error {
		if verb != "record" {
			return nil
		}
		if busy.Add(1) > 1 || r.abandoned(id) != payments.AbandonedAlone+1 {
			t.Errorf("%d record at once, the ticket counts %d", busy.Load(), r.abandoned(id))
		}
		busy.Add(-1)
		return nil
	})
	stop := r.startDue()
	waitFor(t, "all look-ups", func() bool { return listing.readers.Load() == 5 })
	for _, id := range suspects {
		if n := r.abandoned(id); n != payments.AbandonedAlone {
			t.Errorf("a ticket counts %d while it is looked up, and one more for the next owner", n)
		}
	}
	if !r.gate.enter(t.Context(), 1) {
		t.Fatal("look-ups keep others out")
	}
	r.gate.leave(1)
	close(listing.released)
	waitFor(t, "all outcomes", func() bool { return r.store.outcomes() == 5 })
	stop()
	if r.slots.inUse() != 0 || r.gate.inside != 0 || r.gate.closed || len(r.looking) != 0 {
		t.Errorf("left over: %d slots, %d places, closed %v, %d who look", r.slots.inUse(), r.gate.inside, r.gate.closed, len(r.looking))
	}
}

// abandoned is how many owners in a row count as vanished.
func (r *rig) abandoned(id payments.ID) int {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	return r.store.rows[id].abandoned
}

// A drain that ends breaks the listing off: whoever waits for it records that, and gives up nobody's place.
func TestLookUpsEndWithTheDrain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	listing := r.longListing()
	ids := r.inDoubt(6, 0)
	r.store.mu.Lock()
	for _, id := range ids[:3] {
		r.store.rows[id].abandoned = payments.AbandonedAlone
	}
	r.store.mu.Unlock()
	work, stopWork := context.WithCancel(context.Background())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.workDue(ctx, work, r.dues...)
	}()
	waitFor(t, "all look-ups", func() bool { return listing.readers.Load() == 6 })
	cancel()
	stopWork()
	<-done
	if r.slots.inUse() != 0 || r.gate.inside != 0 || r.gate.closed || len(r.looking) != 0 || r.store.outcomes() != 6 {
		t.Errorf("left over: %d slots, %d places, closed %v, %d who look; %d outcomes", r.slots.inUse(), r.gate.inside, r.gate.closed, len(r.looking), r.store.outcomes())
	}
}

// While a handler hangs nobody can be alone. Those who wait for it begin at different times and give up one after the other: then everybody is let in,
// and they keep nobody out again.
func TestLonersBesideAHandlerThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		r.gate.enter(ctx, 1) // and hangs
		loners, back := make([]*loner, 3), make(chan bool, 3)
		for i := range loners {
			l := &loner{w: r.Worker, left: make(chan struct{})}
			loners[i] = l
			l.Leave()
			go func() {
				for in := false; !in && ctx.Err() == nil; { // as payments.Processor comes back
					bounded, cancel := context.WithTimeout(ctx, r.Lease/3)
					in = l.Return(bounded)
					cancel()
				}
				back <- ctx.Err() == nil
			}()
			time.Sleep(r.Lease)
		}
		entered := make(chan bool, 1)
		go func() { entered <- r.gate.enter(ctx, 1) }()
		time.Sleep((alonePatience + 1) * r.Lease)
		synctest.Wait()
		if len(entered) != 1 || len(back) != len(loners) {
			t.Fatalf("%d newcomers and %d of %d who would be alone were let in", len(entered), len(back), len(loners))
		}
		for _, l := range loners {
			l.end()
		}
		r.gate.leave(1)
		if r.gate.inside != 1 || r.gate.closed || len(r.gate.alone)+len(r.gate.many) != 0 {
			t.Errorf("left over: %d places, closed %v, %d and %d waiting", r.gate.inside, r.gate.closed, len(r.gate.alone), len(r.gate.many))
		}
	})
}

// With no room aside nobody is worked on alone, who would read the listing with all others shut out.
func TestNobodyIsAloneWithoutRoomAside(t *testing.T) {
	t.Parallel()
	const slots = 4
	r := newRig(t, func(c *Config) { c.Concurrency = slots })
	listing := r.longListing()
	r.inDoubt(slots, 0)
	stop := r.startDue()
	waitFor(t, "all look-ups", func() bool { return listing.readers.Load() == slots })
	id := r.store.insert(testIntent("suspect"), payments.LaneInteractive, payments.AbandonedAlone)
	r.store.mu.Lock()
	p := &r.store.rows[id].payment
	p.Status, p.InDoubt, p.FirstSubmitAt, p.LastSubmitAt = payments.StatusUnknown, true, time.Now(), time.Now()
	r.store.mu.Unlock()
	for i := range 20 {
		r.store.insert(testIntent("k"+strconv.Itoa(i)), payments.LaneInteractive, 0)
		waitFor(t, "the outcome of one who sends", func() bool { return r.store.outcomes() == i+1 })
	}
	if n := r.store.count("take alone"); n != 0 || listing.readers.Load() != slots {
		t.Errorf("%d times somebody was alone, %d read", n, listing.readers.Load())
	}
	close(listing.released)
	waitFor(t, "all outcomes", func() bool { return r.store.outcomes() == 20+slots+1 })
	stop()
}
