package postgres

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// whole wants a batch of n to be there once, with all that belongs to it, or not at all.
func (b *bench) whole(r payments.BatchRequest, there bool) {
	b.t.Helper()
	n := len(r.Payments)
	want := map[string]int{"payments": n + 1, "batches": 1, "queue": n, "outbox_intents": n}
	for table, rows := range want {
		if !there {
			rows = 0
		}
		if got := b.rows(table); got != rows {
			b.t.Errorf("%s has %d rows, want %d", table, got, rows)
		}
	}
}

// TestBatchCut cuts the connection at each statement of a batch's admission, before and after PostgreSQL has got it.
func TestBatchCut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, action := range actions {
		for _, statement := range []string{begin, query("admit_batch"), "commit"} {
			t.Run(name+" "+statement[:6], func(t *testing.T) {
				t.Parallel()
				c := openCut(t)
				r := batchOf("b", 10)
				c.at(statement, action)
				a, err := c.far.AdmitBatch(ctx, r)
				if err != nil || a.Verdict != payments.VerdictStored && a.Verdict != payments.VerdictExists || len(a.Children) != 10 || c.cuts.Load() != 1 {
					t.Fatalf("%+v, %v, %d cuts", a, err, c.cuts.Load())
				}
				c.whole(r, true)
				c.clock.Advance(c.opts.Hold)
				if items := c.pendingIntents(payments.LaneBulk); len(items) != 10 {
					t.Errorf("%d pending", len(items))
				}
			})
		}
	}
}

// TestBatchDiesBeforeCommit: while a batch is about to be committed nobody sees any of it, and if its process dies then nothing stays.
func TestBatchDiesBeforeCommit(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	dying := b.another(Options{Clock: b.clock, PoolSize: 1, FlushTimeout: 300 * time.Millisecond})
	r := batchOf("b", 10)
	hook := func(verb string) {
		if verb != "admit_batch" {
			return
		}
		b.whole(r, false)
		if _, err := b.pool.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'`); err != nil {
			t.Error(err)
		}
	}
	dying.beforeCommit.Store(&hook)
	if a, err := dying.AdmitBatch(ctx, r); !payments.Retryable(err) {
		t.Errorf("%+v, %v", a, err)
	}
	b.whole(r, false)
	b.admitBatch(r, payments.VerdictStored)
	b.whole(r, true)
}

// TestCompleteCut cuts the connection at each statement of a completion: the event is there once.
func TestCompleteCut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, action := range actions {
		for _, statement := range []string{"lock_batches", "complete_totals", "complete_batches", "write_events", "commit"} {
			t.Run(name+" "+statement, func(t *testing.T) {
				t.Parallel()
				c := openCut(t)
				r := batchOf("b", 3)
				c.admitBatch(r, payments.VerdictStored)
				c.settle(3, succeeded)
				text := statement
				if statement != "commit" {
					text = query(statement)
				}
				c.at(text, action)
				// These three travel together: it may be told, and nobody knows by whom.
				unclear := name == "committed" && slices.Contains([]string{"complete_batches", "write_events", "commit"}, statement)
				n, err := c.far.CompleteBatches(ctx, []payments.BatchRef{refOf(r)})
				if err != nil || n != 1 && !(unclear && n == 0) || c.cuts.Load() != 1 {
					t.Fatalf("%d told, %v, %d cuts", n, err, c.cuts.Load())
				}
				c.toldOnce(r)
				if n := c.complete(refOf(r)); n != 0 {
					t.Errorf("told twice")
				}
			})
		}
	}
}

// toldOnce wants one event of the batch's completion in the timeline and one row in the outbox.
func (b *bench) toldOnce(r payments.BatchRequest) {
	b.t.Helper()
	var events, messages int
	id := r.ID()
	err := b.pool.QueryRow(context.Background(), `SELECT (SELECT count(*) FROM payment_events WHERE tenant_id = 'acme' AND payment_id = $1),
		(SELECT count(*) FROM outbox WHERE tenant_id = 'acme' AND payment_id = $1)`, id[:]).Scan(&events, &messages)
	if err != nil || events != 1 || messages != 1 {
		b.t.Errorf("%d events, %d messages of %s, %v", events, messages, r.IdempotencyKey, err)
	}
	if p, err := b.Find(context.Background(), "acme", id); err != nil || p.Sequence != 1 {
		b.t.Errorf("%+v, %v", p, err)
	}
}

// TestCompleteAtOnce: of many callers at once one tells.
func TestCompleteAtOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	stores := []*Store{b.Store, b.another(Options{Clock: b.clock, PoolSize: 8})}
	var refs []payments.BatchRef
	var requests []payments.BatchRequest
	for n := range 12 {
		r := batchOf("b"+strconv.Itoa(n), 5)
		b.admitBatch(r, payments.VerdictStored)
		requests, refs = append(requests, r), append(refs, refOf(r))
	}
	b.settle(60, succeeded)
	var wg sync.WaitGroup
	var mu sync.Mutex
	told := 0
	start := make(chan struct{})
	for caller := range 8 {
		wg.Go(func() {
			mine := append(append([]payments.BatchRef(nil), refs[caller:]...), refs[:caller]...)
			<-start
			n, err := stores[caller%2].CompleteBatches(ctx, mine)
			if err != nil {
				t.Errorf("caller %d: %v", caller, err)
			}
			mu.Lock()
			defer mu.Unlock()
			told += n
		})
	}
	close(start)
	wg.Wait()
	if told != len(refs) {
		t.Errorf("told %d times of %d batches", told, len(refs))
	}
	for _, r := range requests {
		b.toldOnce(r)
	}
	if open, err := b.OpenBatches(ctx, payments.BatchRef{}, 10); err != nil || len(open) != 0 {
		t.Errorf("%+v, %v", open, err)
	}
}

// TestCompleteRacesTheLastChild: whoever looks while the last children are being recorded tells not before they are, and whoever looks after that tells,
// if nobody has.
func TestCompleteRacesTheLastChild(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	for round := range 40 {
		r := batchOf("b"+strconv.Itoa(round), 2)
		b.admitBatch(r, payments.VerdictStored)
		claims := b.take(payments.TakeRequest{Lane: payments.LaneBulk, Limit: 2})
		var wg sync.WaitGroup
		var mu sync.Mutex
		told := 0
		complete := func() {
			n, err := b.CompleteBatches(ctx, []payments.BatchRef{refOf(r)})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			told += n
		}
		for _, c := range claims {
			wg.Go(func() {
				b.record(c, succeeded(c.Payment), 0)
				complete()
			})
			wg.Go(complete)
		}
		wg.Wait()
		if told != 1 {
			t.Fatalf("round %d: told %d times", round, told)
		}
		b.toldOnce(r)
	}
	// An event never shows less than all.
	for _, it := range b.sent.all() {
		if it.EventType == "oncepay.batch.completed" && !bytes.Contains(it.Body, []byte(`"complete":true`)) {
			t.Errorf("%s", it.Body)
		}
	}
}
