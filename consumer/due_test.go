package consumer

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// startDue works off the due tickets of all lanes until stop is called, which waits for what is under way.
func (r *rig) startDue() (stop func()) { return r.startLoops(r.dues...) }

// startLoops is startDue for some lanes.
func (r *rig) startLoops(dues ...*due) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.workDue(ctx, context.Background(), dues...)
	}()
	return func() {
		cancel()
		<-done
	}
}

// workDue works off due tickets until ctx ends, and waits for what is under way.
func (r *rig) workDue(ctx, work context.Context, dues ...*due) {
	var loops sync.WaitGroup
	for _, d := range dues {
		loops.Go(func() { d.run(ctx, work) })
		loops.Go(func() { d.workAlone(ctx, work) })
	}
	loops.Wait()
	r.hands.running.Wait()
	r.hands.close()
}

// runDue works off due tickets until the test has seen enough.
func (r *rig) runDue(until func() bool, what string) {
	r.t.Helper()
	stop := r.startDue()
	waitFor(r.t, what, until)
	stop()
	if r.slots.inUse() != 0 || r.gate.inside != 0 || r.gate.closed {
		r.t.Errorf("left over: %d slots, %d places", r.slots.inUse(), r.gate.inside)
	}
}

func TestDueTicketsAreSettled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	taken := map[payments.Lane]int{}
	var mu sync.Mutex
	r.Observer.Taken = func(l payments.Lane, n int) { mu.Lock(); taken[l] += n; mu.Unlock() }
	for i := range 100 {
		r.store.insert(testIntent("k"+strconv.Itoa(i)), payments.Lane(i%2+1), 0)
	}
	r.runDue(func() bool { return r.store.outcomes() == 100 }, "100 outcomes")
	if all, most := r.gateway.calls(); all != 100 || most != 1 || taken[1] != 50 || taken[2] != 50 {
		t.Errorf("%d calls, %d under one key, taken %v", all, most, taken)
	}
}

// From the third time on a payment is worked on alone: nobody else is at work meanwhile, and no claim runs down its lease at the gate.
func TestAbandonedIsWorkedOnAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, abandonedIsWorkedOnAlone)
}

func abandonedIsWorkedOnAlone(t *testing.T) {
	r := newRig(t)
	var inside, alone, seen atomic.Int64
	suspects := map[payments.ID]bool{}
	for i := range 40 {
		abandoned := 0
		if i%10 == 0 {
			abandoned = payments.AbandonedAlone + i%3
		}
		id := r.store.insert(testIntent("k"+strconv.Itoa(i)), payments.Lane(i%2+1), abandoned)
		suspects[id] = abandoned > 0
	}
	r.gateway.submit = func(_ context.Context, p payments.Payment) {
		if !suspects[p.ID] {
			inside.Add(1)
			time.Sleep(time.Millisecond)
			if alone.Load() != 0 {
				t.Error("beside one that must be alone")
			}
			inside.Add(-1)
			return
		}
		seen.Add(1)
		if alone.Add(1) != 1 || inside.Load() != 0 {
			t.Error("not alone")
		}
		time.Sleep(5 * time.Millisecond)
		if inside.Load() != 0 {
			t.Error("not alone to the end")
		}
		alone.Add(-1)
	}
	var messages sync.WaitGroup
	for i := range 20 {
		messages.Go(func() {
			msg := newMsg("m"+strconv.Itoa(i), 1)
			r.handle(context.Background(), r.from, msg)
			if msg.acks() != 1 {
				t.Errorf("message %d: %d acks", i, msg.acks())
			}
		})
	}
	r.runDue(func() bool { return r.store.outcomes() == 60 }, "60 outcomes")
	messages.Wait()
	if all, most := r.gateway.calls(); all != 60 || most != 1 || seen.Load() != 4 {
		t.Errorf("%d calls, %d under one key, %d alone", all, most, seen.Load())
	}
}

// After a crash many have been abandoned. They are worked off one by one, without a pause between them, and no token waits for its turn.
func TestManyAbandoned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, manyAbandoned)
}

func manyAbandoned(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Concurrency = 64 })
	const n, call = 1000, time.Millisecond
	for i := range n {
		r.store.insert(testIntent("k"+strconv.Itoa(i)), payments.Lane(i%2+1), payments.AbandonedAlone)
	}
	r.gateway.submit = func(context.Context, payments.Payment) {
		if owned := r.store.owned(); owned != 1 {
			t.Errorf("%d tokens are given out", owned)
		}
		time.Sleep(call)
	}
	began := time.Now()
	r.runDue(func() bool { return r.store.outcomes() == n }, "all outcomes")
	if all, twice := r.gateway.calls(); all != n || twice != 1 {
		t.Errorf("%d calls, %d under one key", all, twice)
	}
	if took := time.Since(began); took > 2*n*call {
		t.Errorf("%d calls of %v took %v", n, call, took)
	}
}

// Whoever ends the process while a payment waits to be worked on alone leaves it uncounted: it has no token yet.
func TestWaitingToBeAloneHoldsNoToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, waitingToBeAloneHoldsNoToken)
}

func waitingToBeAloneHoldsNoToken(t *testing.T) {
	r := newRig(t)
	for i := range 5 {
		r.store.insert(testIntent("k"+strconv.Itoa(i)), payments.Lane(i%2+1), payments.AbandonedAlone)
	}
	r.gate.enter(context.Background(), 1) // somebody works on for long
	stop := r.startDue()
	time.Sleep(r.Lease)
	synctest.Wait()
	if owned := r.store.owned(); owned != 0 {
		t.Errorf("%d tokens wait", owned)
	}
	r.gate.leave(1)
	waitFor(t, "all outcomes", func() bool { return r.store.outcomes() == 5 })
	stop()
}

// A handler that hangs for good does not keep one that waits to be alone, nor those behind it, for good.
func TestPatienceToBeAloneEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, patienceToBeAloneEnds)
}

func patienceToBeAloneEnds(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Lease, c.Processor.Lease, c.Processor.CallTimeout = 60*time.Millisecond, 60*time.Millisecond, time.Millisecond
	})
	r.store.insert(testIntent("k"), payments.LaneInteractive, payments.AbandonedAlone)
	r.gate.enter(context.Background(), 1) // it does not leave before the payment has its outcome
	r.runDue(func() bool {
		done := r.store.outcomes() == 1
		if done {
			r.gate.leave(1)
		}
		return done
	}, "an outcome")
	if !r.gate.enter(context.Background(), 1) {
		t.Error("the gate stayed shut")
	}
	r.gate.leave(1)
}

// A worker that is alone and gets no ticket keeps nobody out.
func TestAloneForNothing(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func() error{"away": func() error { return errAway }, "panic": func() error { panic("bug") }} {
		r := newRig(t)
		r.store.insert(testIntent("k"), payments.LaneInteractive, payments.AbandonedAlone)
		r.store.setBefore(func(v string, _ payments.ID) error {
			if v == "take alone" {
				return fault()
			}
			return nil
		})
		r.runDue(func() bool { return r.store.count("take alone") >= 1 }, name)
		if calls, _ := r.gateway.calls(); calls != 0 || !r.gate.enter(context.Background(), 1) {
			t.Errorf("%s: %d calls", name, calls)
		}
	}
}

func TestAbandonedTooOftenIsBuriedUnstarted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.store.insert(testIntent("k"), payments.LaneInteractive, payments.AbandonedMax)
	r.runDue(func() bool { return r.store.status(id) == payments.StatusStalled }, "buried")
	if calls, _ := r.gateway.calls(); calls != 0 || len(r.store.buried) != 1 || r.store.buried[0].Reason != payments.ReasonWorkerKilled {
		t.Errorf("%d calls, %+v", calls, r.store.buried)
	}
}

// Due tickets get their turn while a backlog wants every slot.
func TestDueTicketsDoNotStarve(t *testing.T) {
	t.Parallel()
	synctest.Test(t, dueTicketsDoNotStarve)
}

func dueTicketsDoNotStarve(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Concurrency = 4 })
	ctx, stop := context.WithCancel(context.Background())
	var backlog sync.WaitGroup
	for _, l := range []payments.Lane{payments.LaneInteractive, payments.LaneBulk} {
		backlog.Go(func() { // as a lane with a backlog does
			for {
				n := r.slots.acquire(ctx, l, forMessages, 4)
				if n == 0 {
					return
				}
				for range n {
					backlog.Go(func() { time.Sleep(time.Millisecond); r.slots.release(l, forMessages, 1) })
				}
			}
		})
	}
	for i := range 20 {
		r.store.insert(testIntent("k"+strconv.Itoa(i)), payments.Lane(i%2+1), 0)
	}
	stopDue := r.startDue()
	waitFor(t, "20 outcomes beside a backlog", func() bool { return r.store.outcomes() == 20 })
	stopDue()
	stop()
	backlog.Wait()
}

// While the store is away it is asked once a second, and everything goes on when it is back.
func TestTakeBacksOff(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.store.insert(testIntent("k"), payments.LaneInteractive, 0)
	failing := payments.Errorf(payments.CodeInternal, "no such table")
	r.store.before = func(v string, _ payments.ID) error {
		if v == "take" && r.store.count("take") <= 4 {
			return failing
		}
		return nil
	}
	started := time.Now()
	r.runDue(func() bool { return r.store.outcomes() == 1 }, "an outcome")
	if d := time.Since(started); d < storePause {
		t.Errorf("five tries within %v", d)
	}
}
