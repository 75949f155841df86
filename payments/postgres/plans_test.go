package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestPlansWhileTablesGrow: a plan is made in the sixth execution of a statement on its connection, at whatever size the tables have then, and
// kept. Between 250 and 325 rows look-ups by id once chose an index that shares nothing but the tenant with the primary key.
func TestPlansWhileTablesGrow(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	conn, err := b.pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	run := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%v\n%s", err, sql)
		}
	}
	run("SET plan_cache_mode = force_generic_plan")
	const step, rows = 25, 750
	for n := 0; n <= rows; n += step {
		run(fmt.Sprintf(`WITH i AS (SELECT i FROM generate_series(%d, %d) i), p AS (
			INSERT INTO payments (tenant_id, id, idempotency_key, kind, lane, status, request_version, fingerprint, fingerprint_version, amount, currency,
				capture_method, off_session, created_at, updated_at)
			SELECT 'acme', substr(sha256(('x' || i)::bytea), 1, 16), 'order-' || i, 'charge', 1, 'received', 1, sha256('y'), 1, 1000, 'usd', 'automatic',
				true, now(), now() FROM i)
			INSERT INTO queue (tenant_id, payment_id, lane, due_at) SELECT 'acme', substr(sha256(('x' || i)::bytea), 1, 16), 1, now() FROM i`, n+1, n+step))
		for _, name := range []string{"admit_read", "read_by_id", "lock_tickets", "end_tickets", "write_payments", "delete_tickets", "lock_payment", "lock_ticket", "extend_submitting", "find",
			"batch_children", "batch_totals", "complete_totals", "complete_batches", "intents_pending",
			"find_follow_up", "follow_ups_of", "follow_up_state", "next_follow_up", "cancel_open", "wake_kept_back"} {
			_, _ = conn.Exec(ctx, "DEALLOCATE ALL")
			plan := strings.Join(explain(t, conn.Conn(), name), "\n")
			_ = conn.Conn().Deallocate(ctx, name)
			for _, table := range []string{"payments", "queue"} {
				if strings.Contains(plan, " on "+table) && (!strings.Contains(plan, "using "+table+"_pkey") || strings.Contains(plan, "payments_tenant_id_")) {
					t.Fatalf("at %d rows %s looks %s up otherwise than by the primary key:\n%s", n, name, table, plan)
				}
			}
		}
	}
}
