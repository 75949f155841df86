package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// backlogPatience is how many times as long as without it a flush may take behind a backlog. As a join of each with each it took 20 times as long.
const backlogPatience = 5

// TestBacklogAfterTheQueueWasEmpty: an empty queue that was vacuumed looks as if it would stay so. On a connection that has made its plans then, the
// tickets of a large batch are taken, recorded and asked for at the cost of each, however many are behind them.
func TestBacklogAfterTheQueueWasEmpty(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0, 100_000} {
		t.Run(fmt.Sprintf("rate %v", rate), func(t *testing.T) {
			t.Parallel()
			b := open(t)
			ctx := context.Background()
			one := &bench{Store: b.another(Options{Clock: b.clock, PoolSize: 1, Rate: rate}), t: t, clock: b.clock}
			run := func(sql string) {
				t.Helper()
				if _, err := b.pool.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
					t.Fatalf("%v\n%s", err, sql)
				}
			}
			for _, table := range []string{"payments", "queue"} {
				run("ALTER TABLE " + table + " SET (autovacuum_enabled = false)")
			}
			work := func(limit int) time.Duration {
				t.Helper()
				began := time.Now()
				taking, err := one.Take(ctx, payments.TakeRequest{Lane: payments.LaneBulk, Limit: limit, Lease: time.Minute, Account: account})
				if err != nil {
					t.Fatal(err)
				}
				if len(taking.Claims) == 0 {
					t.Fatalf("nothing was given of %d", limit)
				}
				recordings := make([]*payments.Recording, len(taking.Claims))
				for i, c := range taking.Claims {
					next := succeeded(c.Payment)
					if i%2 == 0 && limit > 100 {
						next = waiting("rate_limited") // its ticket stays
					}
					recordings[i] = &payments.Recording{Claim: c, Transition: next, At: b.clock.Now(), Delay: time.Hour}
				}
				if _, err := one.flushRecord(ctx, recordings); err != nil {
					t.Fatal(err)
				}
				return time.Since(began)
			}
			for n := range 10 { // until every statement has the plan that it would keep
				tickets(run, 10*n, 10)
				work(10)
				run("VACUUM ANALYZE queue")
			}
			least := func() time.Duration { return min(work(512), work(512), work(512)) } // a machine may stand still now and then
			tickets(run, 1000, 3*512)
			few := least()
			tickets(run, 10_000, 27_000)
			if many := least(); many > backlogPatience*few {
				t.Errorf("512 of 27,000 tickets took %v, and %v of 1,536", many, few)
			}
			run("ANALYZE queue")
			if many := least(); many > backlogPatience*few {
				t.Errorf("512 of 27,000 tickets took %v once the queue was analysed, and %v of 1,536", many, few)
			}
			t.Logf("without a backlog a flush took %v", few)
		})
	}
}

// tickets stores n payments of acme with tickets that are due on the bulk lane.
func tickets(run func(string), first, n int) {
	run(fmt.Sprintf(`WITH i AS (SELECT i FROM generate_series(%d, %d) i), p AS (
		INSERT INTO payments (tenant_id, id, idempotency_key, kind, lane, status, request_version, fingerprint, fingerprint_version, amount, currency,
			capture_method, off_session, created_at, updated_at)
		SELECT 'acme', substr(sha256(('x' || i)::bytea), 1, 16), 'order-' || i, 'charge', 2, 'received', 1, sha256('y'), 1, 1000, 'usd', 'automatic',
			true, now(), now() FROM i)
		INSERT INTO queue (tenant_id, payment_id, lane, due_at) SELECT 'acme', substr(sha256(('x' || i)::bytea), 1, 16), 2, now() - interval '1 day' FROM i`,
		first, first+n-1))
}
