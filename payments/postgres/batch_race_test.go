package postgres

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// TestBatchesAndSinglesMeet: batches, repeats of them and requests under the same keys come at once, in any order, and all are answered. A batch is
// there whole or not at all.
func TestBatchesAndSinglesMeet(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	stores := []*Store{b.Store, b.another(Options{Clock: b.clock, PoolSize: 8})}
	const rounds, size = 30, 12
	for round := range rounds {
		r := batchOf("r"+strconv.Itoa(round), size)
		children := r.Children()
		verdicts := make(chan payments.Verdict, 64)
		var wg sync.WaitGroup
		start := make(chan struct{})
		for n := range 4 {
			wg.Go(func() {
				<-start
				a, err := stores[n%2].AdmitBatch(ctx, r)
				if err != nil {
					t.Errorf("AdmitBatch: %v", err)
				}
				verdicts <- a.Verdict
			})
		}
		for n := range 4 { // as the copies on the bulk stream, which insert nothing, and some that ask for another thing under the batch's own key
			wg.Go(func() {
				<-start
				for i, child := range children {
					if n == 3 {
						child = intent("acme", r.IdempotencyKey+"-"+strconv.Itoa(i), 1)
					}
					if _, err := stores[n%2].Admit(ctx, payments.AdmitRequest{Intent: child, Lane: payments.LaneBulk, ExistingOnly: n < 3}); err != nil {
						t.Errorf("Admit: %v", err)
					}
				}
				if _, err := stores[n%2].Admit(ctx, payments.AdmitRequest{Intent: intent("acme", r.IdempotencyKey, 1), Lane: payments.LaneBulk, ExistingOnly: n < 3 || round%2 == 0}); err != nil {
					t.Errorf("Admit: %v", err)
				}
			})
		}
		close(start)
		wg.Wait()
		close(verdicts)
		counts := map[payments.Verdict]int{}
		for v := range verdicts {
			counts[v]++
		}
		if counts[payments.VerdictConflict] != 4 && (counts[payments.VerdictStored] != 1 || counts[payments.VerdictExists] != 3) {
			t.Errorf("round %d: %v", round, counts)
		}
		want := size
		if counts[payments.VerdictConflict] == 4 {
			want = 0
		}
		found, err := b.FindMany(ctx, tenantsOf(children), idsOf(children))
		if err != nil || len(found) != want {
			t.Errorf("round %d: %d children, %v; %v", round, len(found), err, counts)
		}
	}
}

func tenantsOf(list []payments.Intent) (tenants []string) {
	for _, i := range list {
		tenants = append(tenants, i.TenantID)
	}
	return tenants
}

func idsOf(list []payments.Intent) (ids []payments.ID) {
	for _, i := range list {
		ids = append(ids, i.ID())
	}
	return ids
}

// TestBatchDeadlockIsRepeated: a transaction that holds a child's key and then wants the batch's waits in a circle with it; PostgreSQL ends one of them,
// and both calls are answered.
func TestBatchDeadlockIsRepeated(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	r := batchOf("b", 3)
	child := r.Children()[1]
	holder, err := b.pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Release()
	insert := func(in payments.Intent) error {
		id := in.ID()
		_, err := holder.Exec(ctx, `INSERT INTO payments (tenant_id, id, idempotency_key, kind, lane, status, request_version, fingerprint, fingerprint_version,
			amount, currency, capture_method, off_session, created_at, updated_at, finalized_at)
			VALUES ('acme', $1, $2, 'charge', 1, 'failed', 1, sha256('x'), 1, 1, 'usd', 'automatic', true, now(), now(), now()) ON CONFLICT DO NOTHING`, id[:], in.IdempotencyKey)
		return err
	}
	if _, err := holder.Exec(ctx, "BEGIN"); err != nil {
		t.Fatal(err)
	}
	if err := insert(child); err != nil {
		t.Fatal(err)
	}
	type answer struct {
		payments.BatchAdmission
		error
	}
	done := make(chan answer, 1)
	go func() {
		a, err := b.AdmitBatch(ctx, r)
		done <- answer{a, err}
	}()
	b.until("the batch waits for its child's key", func() bool {
		var n int
		err := b.pool.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'transactionid'").Scan(&n)
		return err == nil && n == 1
	})
	_ = insert(payments.Intent{TenantID: "acme", IdempotencyKey: "b"}) // one of the two is ended: this one, or the batch, which comes again
	if _, err := holder.Exec(ctx, "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if a := <-done; a.error != nil || a.Verdict != payments.VerdictStored {
		t.Errorf("%+v", a)
	}
	b.whole(r, true)
}

// TestBatchesWhileBackendsAreKilled: whoever is told that PostgreSQL is away repeats the same; every batch is there once, and told once.
func TestBatchesWhileBackendsAreKilled(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	s := b.another(Options{Clock: b.clock, PoolSize: 4, Committed: b.sent.add})
	const atMost, killsWanted, size = 2000, 10, 5
	kills, worked, calm := b.killBackends(10 * time.Millisecond)
	var callers sync.WaitGroup
	next := make(chan int)
	for range 4 {
		callers.Go(func() {
			for n := range next {
				r := batchOf("b"+strconv.Itoa(n), size)
				a, err := s.AdmitBatch(ctx, r)
				for payments.Retryable(err) {
					a, err = s.AdmitBatch(ctx, r)
				}
				poke(worked)
				if err != nil || a.Verdict != payments.VerdictStored && a.Verdict != payments.VerdictExists || len(a.Children) != size {
					t.Errorf("AdmitBatch: %s, %v", a.Verdict, err)
					continue
				}
				for _, p := range a.Children {
					finish := func() error {
						_, err := s.Evidence(ctx, "acme", p.ID, func(p payments.Payment) (payments.Transition, error) { return succeeded(p), nil })
						return err
					}
					err := finish()
					for payments.Retryable(err) {
						err = finish()
					}
					if err != nil {
						t.Errorf("Evidence: %v", err)
					}
					poke(worked)
				}
				_, err = s.CompleteBatches(ctx, []payments.BatchRef{refOf(r)})
				for payments.Retryable(err) {
					_, err = s.CompleteBatches(ctx, []payments.BatchRef{refOf(r)})
				}
				if err != nil {
					t.Errorf("CompleteBatches: %v", err)
				}
				poke(worked)
			}
		})
	}
	n := 0
	for ; n < atMost && (n < 30 || kills.Load() < killsWanted); n++ {
		next <- n
	}
	close(next)
	callers.Wait()
	calm()
	if kills.Load() < killsWanted {
		t.Errorf("only %d backends were terminated", kills.Load())
	}
	var told, events, children int
	if err := b.pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM batches WHERE completed_at IS NOT NULL),
		(SELECT count(*) FROM payment_events WHERE type = 'oncepay.batch.completed'), (SELECT count(*) FROM payments WHERE batch_id IS NOT NULL)`).Scan(&told, &events, &children); err != nil {
		t.Fatal(err)
	}
	if told != n || events != n || children != n*size || b.rows("outbox_intents") != n*size || b.rows("payments") != n*(size+1) {
		t.Errorf("%d told, %d events, %d children of %d batches after %d kills", told, events, children, n, kills.Load())
	}
	t.Logf("%d backends terminated, %d batches", kills.Load(), n)
}
