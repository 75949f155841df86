package consumer

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

const (
	// lastRecords is how long records may still take once the drain time is over.
	lastRecords = 3 * time.Second
	// storePause is the time between two tries while the store is away.
	storePause = time.Second
	// brokenFrom is how many Admits in a row may fail for a reason that no time will mend before pulling slows down: what is pulled into
	// failure comes back, and each time it looks more like a message that ends its worker.
	brokenFrom = 8
)

// Worker competes with all other workers for intents and due tickets. Any number may run; the store decides who owns what.
type Worker struct {
	Config
	slots  *slots
	gate   gate // keeps bystanders away from a payment that may end the process
	lanes  []*lane
	dues   []*due
	scouts []*scout
	tally  tally
	seldom seldom

	breakers *breakers

	complete *complete

	// looking has room for those who read Stripe's records aside.
	looking chan struct{}
	// starting has room for the one suspect message that may start: the one that kills the process must be known.
	starting chan struct{}

	records   context.Context // outlives the calls to Stripe: what was answered is recorded
	storeAway atomic.Bool     // the last thing the store said was that it is unavailable
	broken    atomic.Int64    // Admits in a row that failed for another reason
	stopping  atomic.Bool
	hands     hands
	busy      atomic.Int64 // handlers that run
}

// New returns a Worker; Run starts it.
func New(c Config) (*Worker, error) {
	c.setDefaults()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	w := &Worker{Config: c, slots: newSlots(c.Concurrency), looking: make(chan struct{}, c.Concurrency), starting: make(chan struct{}, 1), records: context.Background()}
	w.guard()
	w.complete = newComplete(w)
	w.dues = []*due{newDue(w, payments.LaneInteractive), newDue(w, payments.LaneBulk)}
	w.lanes = []*lane{
		newLane(w, w.dues[0], c.Subjects.StreamIntents(), schema.ConsumerIntent),
		newLane(w, w.dues[1], c.Subjects.StreamBulk(), schema.ConsumerBulk),
	}
	for i, l := range w.lanes {
		w.scouts = append(w.scouts, newScout(l, w.dues[i], newAhead(l)))
	}
	return w, nil
}

// due works off the lane's due tickets.
func (w *Worker) due(l payments.Lane) *due { return w.dues[l-payments.LaneInteractive] }

// Run works until ctx ends, and then drains: it stops pulling and taking, admits unclaimed what was pulled and not started, and lets what is in
// flight finish on its own time, at most drain long (calls to Stripe go on; a charge that Stripe has answered is recorded). It returns nil
// after a complete drain. A Worker runs once.
func (w *Worker) Run(ctx context.Context, drain time.Duration) error {
	// What is in flight must outlive ctx: an answer of Stripe that is not recorded has to be asked for again.
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	records, stopRecords := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRecords()
	w.records = records
	var loops sync.WaitGroup
	for _, l := range w.lanes {
		loops.Go(func() { l.pull(ctx, work) })
	}
	for _, d := range w.dues {
		loops.Go(func() { d.run(ctx, work) })
		loops.Go(func() { d.workAlone(ctx, work) })
		loops.Go(func() { d.doubt(ctx) })
	}
	for _, s := range w.scouts {
		loops.Go(func() { s.run(ctx, work) })
	}
	loops.Go(func() { w.complete.run(ctx) })
	loops.Go(func() { w.complete.sweep(ctx) })
	loops.Go(func() { w.wakeKeptBack(ctx) })
	<-ctx.Done()
	defer w.hands.close()
	w.stopping.Store(true)
	done := make(chan struct{})
	go func() {
		loops.Wait()
		w.hands.running.Wait()
		w.complete.last(work) // what was settled on the way here
		close(done)
	}()
	timer := time.NewTimer(drain)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
		w.breakers.stop()
		stopWork() // calls to Stripe end, as unknown outcomes
		select {
		case <-done:
		case <-time.After(lastRecords):
		}
		return errors.New("consumer: the drain time ended with payments in flight; their tickets bring them back")
	}
}

// InFlight is how many payments this worker is busy with.
func (w *Worker) InFlight() int { return int(w.busy.Load()) }

// spawn runs a handler, which has one slot of the lane, given back when it ends.
func (w *Worker) spawn(l payments.Lane, from source, handler func(*slot)) {
	w.busy.Add(1)
	w.hands.do(func() {
		s := &slot{of: w.slots, lane: l, from: from, has: true}
		defer s.giveBack()
		defer w.busy.Add(-1)
		handler(s)
	})
}

// WakeDue makes the worker look for due tickets at once.
func (w *Worker) WakeDue() {
	for _, d := range w.dues {
		d.wakeUp()
	}
}

func (w *Worker) noteInFlight() {
	if w.Observer.InFlight != nil {
		w.Observer.InFlight(w.InFlight())
	}
}

// noteStore remembers whether the store answers, so that nothing is pulled into failure while it is away.
func (w *Worker) noteStore(err error) {
	w.storeAway.Store(err != nil && payments.Retryable(err))
}

// noteAdmit is noteStore for an Admit, which may also fail although the store is there.
func (w *Worker) noteAdmit(err error) {
	w.noteStore(err)
	if payments.ErrorCode(err) == payments.CodeInternal {
		w.broken.Add(1)
	} else if err == nil {
		w.broken.Store(0)
	}
}

// away reports whether what is pulled now is likely to fail.
func (w *Worker) away() bool { return w.held() || w.storeAway.Load() || w.broken.Load() >= brokenFrom }

// held reports whether the process may send nothing at present.
func (w *Worker) held() bool { return w.Held != nil && w.Held() != "" }

// pauseWhileAway waits as long as the process is held, and a moment while the store is away, and reports whether to go on; the caller then tries
// with a single item.
func (w *Worker) pauseWhileAway(ctx context.Context) bool {
	for w.held() {
		if !wait(ctx, w.PollInterval) {
			return false
		}
	}
	if !w.away() {
		return ctx.Err() == nil
	}
	return wait(ctx, storePause)
}

// wait sleeps for d and reports whether ctx still stands.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
