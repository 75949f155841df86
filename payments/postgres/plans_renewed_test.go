package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// keptPlan is the plan that the only connection of the store keeps for a statement.
func keptPlan(t *testing.T, s *Store, statement string) string {
	t.Helper()
	ctx := context.Background()
	var name string
	var params int
	if err := s.pool.QueryRow(ctx, "SELECT name, cardinality(parameter_types) FROM pg_prepared_statements WHERE statement = $1", query(statement)).Scan(&name, &params); err != nil {
		t.Fatal(err)
	}
	rows, err := s.pool.Query(ctx, "EXPLAIN EXECUTE "+name+"("+strings.TrimSuffix(strings.Repeat("NULL,", params), ",")+")", pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(plan, "\n")
}

// comparesAll reports whether a plan reads the whole queue and compares each ticket with each that is asked for.
func comparesAll(plan string) bool { return strings.Contains(plan, "Join Filter: ((q") }

// TestPlansAreRenewed: the plan that an idle installation keeps for its empty queue is given up when something takes long, and a store that was opened
// afterwards has a good one as well, whatever vacuum has left in the catalogue.
func TestPlansAreRenewed(t *testing.T) {
	t.Parallel()
	const burst = 3000
	for name, vacuum := range map[string][]string{
		"one ticket": {"VACUUM ANALYZE queue"},
		"no ticket":  {"DELETE FROM queue", "VACUUM ANALYZE queue"},
		"no ticket, but pages": {"INSERT INTO queue (tenant_id, payment_id, lane, due_at) SELECT 'globex', substr(sha256(i::text::bytea), 1, 16), 1, now() FROM generate_series(1, 2000) i",
			"DELETE FROM queue", "VACUUM (TRUNCATE false, ANALYZE) queue"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			ctx := context.Background()
			run := func(sql string) {
				t.Helper()
				if _, err := b.pool.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
					t.Fatalf("%v\n%s", err, sql)
				}
			}
			run("ALTER TABLE queue SET (autovacuum_enabled = false)") // which would come by in the middle
			b.admit(payments.AdmitRequest{Intent: intent("globex", "waits", 100), Lane: payments.LaneBulk})
			for _, sql := range vacuum {
				run(sql)
			}
			one := b.another(Options{Clock: b.clock, PoolSize: 1})
			take := func() {
				t.Helper()
				if _, err := one.Take(ctx, payments.TakeRequest{Lane: payments.LaneInteractive, Limit: 64, Lease: time.Minute, Account: account}); err != nil {
					t.Fatal(err)
				}
			}
			for range 8 { // the sixth makes the plan that is kept
				take()
			}
			run(fmt.Sprintf(`INSERT INTO queue (tenant_id, payment_id, lane, due_at) SELECT 'globex', substr(sha256(('x' || i)::bytea), 1, 16), 1, '2100-01-01' FROM generate_series(1, %d) i`, burst))
			take()
			if plan := keptPlan(t, one, "take"); !comparesAll(plan) {
				t.Fatalf("the plan of an idle installation is a good one already:\n%s", plan)
			}
			one.took(slowStatement - 1)
			one.plans.renewing.Wait()
			if n := one.plans.generation.Load(); n != 0 {
				t.Fatalf("renewed %d times for what was quick", n)
			}
			for range 2 { // of which the second comes too soon
				one.took(slowStatement)
				one.plans.renewing.Wait()
			}
			if n := one.plans.generation.Load(); n != 1 {
				t.Errorf("renewed %d times", n)
			}
			take()
			if plan := keptPlan(t, one, "take"); comparesAll(plan) {
				t.Errorf("it is kept:\n%s", plan)
			}
			run("TRUNCATE queue")
			run("DELETE FROM payments")
		})
	}
}
