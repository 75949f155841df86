package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// batchOf stores a batch of n payments, of which nothing is settled.
func (r *rig) batchOf(key string, n int) payments.BatchRef {
	r.t.Helper()
	request := payments.BatchRequest{TenantID: "acme", IdempotencyKey: key}
	for range n {
		p := testIntent("")
		request.Payments = append(request.Payments, p)
	}
	a, err := r.store.AdmitBatch(context.Background(), request)
	if err != nil || a.Verdict != payments.VerdictStored {
		r.t.Fatalf("%+v, %v", a, err)
	}
	return payments.BatchRef{TenantID: "acme", ID: request.ID()}
}

// finish gives the i-th payment of a batch a status without anybody hearing of it.
func (r *rig) finish(key string, i int, s payments.Status) {
	r.t.Helper()
	id := childID(r.t, key, i)
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	row := r.store.rows[id]
	row.payment.Status, row.ticket, row.token = s, s.HasTicket(), payments.Token{}
}

// settleDueOnce takes and settles up to n of the bulk lane's tickets.
func (r *rig) settleDueOnce(n int) {
	r.t.Helper()
	got, err := r.store.Take(context.Background(), payments.TakeRequest{Lane: payments.LaneBulk, Limit: n, Lease: r.Lease})
	if err != nil || len(got.Claims) != n {
		r.t.Fatalf("%d claims, %v", len(got.Claims), err)
	}
	for _, c := range got.Claims {
		r.settle(context.Background(), c, time.Time{})
	}
}

// completing runs the loops of a rig's worker that tell of batches, in a bubble; stop ends them.
func completing(r *rig) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var loops sync.WaitGroup
	loops.Go(func() { r.complete.run(ctx) })
	loops.Go(func() { r.complete.sweep(ctx) })
	return func() { cancel(); loops.Wait() }
}

// Who settles the last payment of a batch tells of it soon after, once, and asks about others together.
func TestLastPaymentTellsOfTheBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := 0
		r := newRig(t, func(c *Config) { c.Observer.Completed = func(n int) { told += n } })
		ref := r.batchOf("b", 100)
		defer completing(r)()
		r.settleDueOnce(99)
		synctest.Wait()
		time.Sleep(5 * completeEvery)
		if got := r.store.completed(); len(got) != 0 {
			t.Errorf("%v with a payment that is not final", got)
		}
		if n := r.store.count("complete batches"); n < 1 || n > 3 {
			t.Errorf("99 hints about one batch made %d calls", n)
		}
		started := time.Now()
		r.settleDueOnce(1)
		synctest.Wait()
		if got := r.store.completed(); !slices.Equal(got, []payments.BatchRef{ref}) || time.Since(started) > completeEvery || told != 1 {
			t.Errorf("after %v: %v, observed %d", time.Since(started), got, told)
		}
	})
}

// What is not final, or of no batch, or was not recorded, hints nothing.
func TestNoHint(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := payments.Payment{Intent: testIntent("b::0"), Status: payments.StatusSucceeded, BatchID: payments.NewID("acme", "b").Format(payments.KindBatch)}
	settlement := func(change func(*payments.Settlement)) payments.Settlement {
		s := payments.Settlement{Recorded: payments.Recorded{Payment: p, Sequence: 1}}
		change(&s)
		return s
	}
	for name, s := range map[string]payments.Settlement{
		"no batch":     settlement(func(s *payments.Settlement) { s.Recorded.Payment.BatchID = "" }),
		"no id":        settlement(func(s *payments.Settlement) { s.Recorded.Payment.BatchID = "bat_?" }),
		"waiting":      settlement(func(s *payments.Settlement) { s.Recorded.Payment.Status = payments.StatusWaiting }),
		"stalled":      settlement(func(s *payments.Settlement) { s.Recorded.Payment.Status = payments.StatusStalled }),
		"unknown":      settlement(func(s *payments.Settlement) { s.Recorded.Payment.Status = payments.StatusUnknown }),
		"needs review": settlement(func(s *payments.Settlement) { s.Recorded.Payment.Status = payments.StatusNeedsReview }),
		"not recorded": settlement(func(s *payments.Settlement) { s.Err = errAway }),
		"nothing":      {},
	} {
		r.complete.settled(s)
		if len(r.complete.hints) != 0 || len(r.complete.wake) != 0 {
			t.Errorf("%s: hinted", name)
			clear(r.complete.hints)
		}
	}
	for _, status := range payments.Statuses() {
		r.complete.settled(settlement(func(s *payments.Settlement) { s.Recorded.Payment.Status = status }))
		if hinted := len(r.complete.hints) == 1; hinted != status.Final() {
			t.Errorf("%s: hinted: %v", status, hinted)
		}
		clear(r.complete.hints)
	}
}

// Batches whose last payment became final some other way, or whose hint was lost, are found by the sweep.
func TestSweepFindsWhatHintsCannotTell(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var refs []payments.BatchRef
		for i := range 3 {
			refs = append(refs, r.batchOf(fmt.Sprint("b", i), 2))
		}
		r.finish("b0", 0, payments.StatusCanceled)
		r.finish("b0", 1, payments.StatusExpired)
		r.finish("b1", 0, payments.StatusSucceeded)
		r.finish("b1", 1, payments.StatusStalled) // given up, and not final
		defer completing(r)()
		time.Sleep(2 * sweepEvery)
		synctest.Wait()
		if got := r.store.completed(); !slices.Equal(got, refs[:1]) {
			t.Errorf("%v", got)
		}
		r.finish("b1", 1, payments.StatusFailed)
		time.Sleep(2 * sweepEvery)
		synctest.Wait()
		if got := r.store.completed(); !slices.Equal(got, refs[:2]) {
			t.Errorf("%v", got)
		}
	})
}

// With 10,000 open batches a sweep asks for pages, pauses between calls, sees all of them, and then rests.
func TestSweepOfManyBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		const n = 10_000
		for i := range n {
			r.batchOf(fmt.Sprintf("b%d", i), 1)
		}
		r.finish("b7", 0, payments.StatusSucceeded)
		const call = 5 * time.Millisecond
		r.store.setBefore(func(string, payments.ID) error { time.Sleep(call); return nil })
		started := time.Now()
		busy := r.complete.sweepOnce(context.Background())
		took := time.Since(started)
		lists, calls := r.store.count("open batches"), r.store.count("complete batches")
		if lists != n/sweepPage+1 || calls != n/completeAtOnce || len(r.store.completed()) != 1 {
			t.Errorf("%d lists, %d calls, %d told", lists, calls, len(r.store.completed()))
		}
		if want := time.Duration(lists+calls) * call; busy != want || took != want+time.Duration(calls)*sweepPause {
			t.Errorf("busy for %v of %v, want %v and a pause after each of %d calls", busy, took, want, calls)
		}
		defer completing(r)()
		before := r.store.count("open batches")
		const span = 4 * time.Minute
		time.Sleep(span)
		sweeps := float64(r.store.count("open batches")-before) / float64(lists)
		if sweeps < 8 || sweeps*busy.Seconds() > span.Seconds()/sweepRest*1.1 {
			t.Errorf("%.1f sweeps, of which each keeps the store busy for %v, in %v", sweeps, busy, span)
		}
	})
}

// While PostgreSQL is away hints are kept and tried again at leisure.
func TestHintsOutliveAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		ref := r.batchOf("b", 1)
		r.store.setBefore(func(verb string, _ payments.ID) error {
			if verb == "complete batches" || verb == "open batches" {
				return errAway
			}
			return nil
		})
		defer completing(r)()
		r.settleDueOnce(1)
		const outage = 5 * time.Second
		time.Sleep(outage)
		if n := r.store.count("complete batches"); n < 4 || n > int(outage/storePause)+1 {
			t.Errorf("%d calls in %v", n, outage)
		}
		if r.storeAway.Load() {
			t.Error("pulling is slowed down by what does not matter to it")
		}
		r.store.setBefore(nil)
		time.Sleep(2 * storePause)
		if got := r.store.completed(); !slices.Equal(got, []payments.BatchRef{ref}) {
			t.Errorf("%v", got)
		}
	})
}

// Hints are bounded; what finds no room is told by the sweep.
func TestHintsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 2 * hintsMax {
		r.complete.hint(payments.BatchRef{TenantID: "acme", ID: payments.NewID("acme", fmt.Sprint(i))})
	}
	if n := len(r.complete.hints); n != hintsMax {
		t.Errorf("%d hints are kept, want %d", n, hintsMax)
	}
	seen := 0
	for all := false; !all; {
		var refs []payments.BatchRef
		if refs, all = r.complete.hinted(); len(refs) > completeAtOnce {
			t.Fatalf("%d at once", len(refs))
		}
		seen += len(refs)
	}
	if seen != hintsMax || len(r.complete.hints) != 0 {
		t.Errorf("%d were taken, %d left", seen, len(r.complete.hints))
	}
}

// What the store cannot do, or panics over, ends nothing: the sweep goes on with the next batches, and comes back.
func TestABadBatchEndsNothing(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() error{
		"an error": func() error { return errors.New("bug") },
		"a panic":  func() error { panic("bug") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			for i := range 3 * completeAtOnce {
				r.batchOf(fmt.Sprint("b", i), 1)
				r.finish(fmt.Sprint("b", i), 0, payments.StatusSucceeded)
			}
			first, err := r.store.OpenBatches(context.Background(), payments.BatchRef{}, 1)
			if err != nil {
				t.Fatal(err)
			}
			r.Batches = badBatches{r.store, first[0], fail}
			r.complete.sweepOnce(context.Background())
			if got := r.store.completed(); len(got) != 2*completeAtOnce {
				t.Errorf("%d told", len(got))
			}
			if err := r.complete.tell(context.Background(), first); err != nil {
				t.Errorf("%v: only a store that is away is worth another try", err)
			}
			r.Batches = r.store
			r.complete.sweepOnce(context.Background())
			if got := r.store.completed(); len(got) != 3*completeAtOnce {
				t.Errorf("then %d told", len(got))
			}
		})
	}
}

// badBatches fails over one batch.
type badBatches struct {
	*fakeStore
	bad  payments.BatchRef
	fail func() error
}

func (b badBatches) CompleteBatches(ctx context.Context, refs []payments.BatchRef) (int, error) {
	if slices.Contains(refs, b.bad) {
		return 0, b.fail()
	}
	return b.fakeStore.CompleteBatches(ctx, refs)
}

// The drain tells of what was settled on the way, and gives up at once where the store is away.
func TestLastHints(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 3 * completeAtOnce {
		r.batchOf(fmt.Sprint("b", i), 1)
		r.finish(fmt.Sprint("b", i), 0, payments.StatusSucceeded)
		r.complete.hint(payments.BatchRef{TenantID: "acme", ID: payments.NewID("acme", fmt.Sprint("b", i))})
	}
	r.complete.last(context.Background())
	if got := r.store.completed(); len(got) != 3*completeAtOnce {
		t.Errorf("%d told", len(got))
	}
	r.complete.hint(payments.BatchRef{TenantID: "acme", ID: payments.NewID("acme", "x")})
	r.store.setBefore(func(string, payments.ID) error { return errAway })
	calls := r.store.count("complete batches")
	r.complete.last(context.Background())
	if n := r.store.count("complete batches") - calls; n != 1 {
		t.Errorf("%d calls to a store that is away", n)
	}
}
