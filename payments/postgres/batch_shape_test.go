package postgres

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// runOf puts n batches of 100 payments each into the tables, as AdmitBatch would, a second apart; of each the first are final.
func (b *bench) runOf(parent string, n, final int) {
	b.t.Helper()
	ctx := context.Background()
	for _, sql := range []string{
		`INSERT INTO batches (tenant_id, id, idempotency_key, parent, count, created_at)
		SELECT 'acme', substr(sha256(('acme'::bytea || '\x00'::bytea) || key::bytea), 1, 16), key, $1, 100, '2030-01-31'::timestamptz + i * interval '1 s'
		FROM (SELECT i, $1::text || '.' || lpad(i::text, 6, '0') AS key FROM generate_series(0, $2::int - 1) i) k`,
		`INSERT INTO payments (tenant_id, id, idempotency_key, kind, lane, status, request_version, fingerprint, fingerprint_version, amount, currency,
			capture_method, off_session, created_at, updated_at, finalized_at, batch_id)
		SELECT 'acme', substr(sha256(('acme'::bytea || '\x00'::bytea) || key::bytea), 1, 16), key, 'charge', 2, CASE WHEN i < $2 THEN 'succeeded' ELSE 'received' END, 1,
			sha256('y'), 1, 1000, 'usd', 'automatic', true, created_at, created_at, CASE WHEN i < $2 THEN created_at END, 'bat'
		FROM (SELECT i, b.created_at, b.idempotency_key || '::' || i AS key FROM batches b, generate_series(0, 99) i WHERE b.parent = $1 ORDER BY b.created_at, i) k`,
		`INSERT INTO queue (tenant_id, payment_id, lane, due_at)
		SELECT p.tenant_id, p.id, 2, p.created_at FROM payments p WHERE p.status = 'received' AND ($1::text, $2::int) IS NOT NULL`,
	} {
		var second any = final
		if strings.HasPrefix(sql, "INSERT INTO batches") {
			second = n
		}
		if _, err := b.pool.Exec(ctx, sql, parent, second); err != nil {
			b.t.Fatalf("%v\n%s", err, sql)
		}
	}
}

// TestBatchesOfALargeRun: 100,000 payments of 1,000 batches, without ANALYZE and with plans that were made while the tables were empty: the totals of
// a page cost a few pages of the database for each payment (0.6 s in all), and those of one batch look at its own rows alone.
func TestBatchesOfALargeRun(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	for _, table := range []string{"payments", "queue", "batches"} {
		if _, err := b.pool.Exec(ctx, "ALTER TABLE "+table+" SET (autovacuum_enabled = false)"); err != nil {
			t.Fatal(err)
		}
	}
	one := b.another(Options{Clock: b.clock, PoolSize: 1})
	for range 7 { // after which the connection has made the plans that it keeps
		if _, _, err := one.Batches(ctx, payments.BatchListRequest{TenantID: "acme", Parent: "run"}); err != nil {
			t.Fatal(err)
		}
		if _, err := one.CompleteBatches(ctx, []payments.BatchRef{{TenantID: "acme"}}); err != nil {
			t.Fatal(err)
		}
	}
	b.runOf("run", 1000, 60)
	var page []payments.BatchState
	took, each := time.Duration(0), math.Inf(1)
	for range 3 { // the least counts: sessions tell what they have read when they see fit, and those that filled the tables may do so meanwhile
		before, start := b.pages(one), time.Now()
		var next string
		var err error
		page, next, err = one.Batches(ctx, payments.BatchListRequest{TenantID: "acme", Parent: "run", Limit: 1000})
		if err != nil || len(page) != 1000 || next != "" {
			t.Fatalf("%d batches, %q, %v", len(page), next, err)
		}
		if read := float64(b.pages(one)-before) / 100_000; read < each {
			took, each = time.Since(start), read
		}
	}
	for i, s := range page {
		if want := fmt.Sprintf("run.%06d", i); s.IdempotencyKey != want || len(s.Totals) != 2 || s.Totals[0] != (payments.StatusTotal{Status: "received", Currency: "usd", Count: 40, Amount: 40_000}) || s.Totals[1].Count != 60 {
			t.Fatalf("%d: %+v", i, s)
		}
	}
	t.Logf("a page of 1,000 batches: %s, %.1f pages a payment", took, each)
	if each > 8 { // a probe of an index of three levels and the row, and another probe for what may have an owner
		t.Errorf("a page of 1,000 batches read %.1f pages a payment", each)
	}
	conn, err := b.pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, "SET plan_cache_mode = force_generic_plan"); err != nil {
		t.Fatal(err)
	}
	r := batchOf("run.000500", 100)
	tenants, ids := keyArrays([]key{{"acme", r.ID()}})
	id := r.ID()
	for name, c := range map[string]struct {
		params     []any
		rows, most int
	}{
		"batch_totals":    {[]any{tenants, ids}, 2, 101},
		"batch_children":  {[]any{"acme", id[:]}, 100, 101},
		"complete_totals": {[]any{tenants, ids}, 0, 62}, // it ends at the first that is not final
	} {
		rows, err := conn.Query(ctx, "EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF) "+query(name), c.params...)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(plan, "\n")
		if read := looked(plan); read < c.rows || read > c.most || strings.Contains(text, "Seq Scan on") {
			t.Errorf("%s read %d payments:\n%s", name, read, text)
		}
		got, err := conn.Query(ctx, query(name), c.params...)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for got.Next() {
			n++
		}
		if got.Err() != nil || n != c.rows {
			t.Errorf("%s: %d rows, %v, want %d", name, n, got.Err(), c.rows)
		}
	}
	if n, err := one.CompleteBatches(ctx, []payments.BatchRef{refOf(r)}); n != 0 || err != nil {
		t.Errorf("%d told, %v", n, err)
	}
	open, err := one.OpenBatches(ctx, payments.BatchRef{}, 1000)
	if err != nil || len(open) != 1000 {
		t.Errorf("%d open, %v", len(open), err)
	}
	if rest, err := one.OpenBatches(ctx, open[997], 1000); err != nil || len(rest) != 2 || rest[1] != open[999] {
		t.Errorf("%+v, %v", rest, err)
	}
}

// rowsAndLoops are what a line of a plan says of how often its node ran and what it gave each time.
var rowsAndLoops = regexp.MustCompile(`actual rows=(\d+)(?:\.\d+)? loops=(\d+)`)

// looked is how many payments a plan has looked up, each by a probe of the primary key that gives one row at most.
func looked(plan []string) (n int) {
	for i, line := range plan {
		if !strings.Contains(line, "on payments p") {
			continue
		}
		m := rowsAndLoops.FindStringSubmatch(line)
		if m == nil && strings.Contains(line, "never executed") {
			continue
		}
		if m == nil || m[1] > "1" || len(m[1]) > 1 || !strings.Contains(line, "using payments_pkey") || !strings.Contains(plan[i+1], "(id = ") {
			return 1 << 30
		}
		loops, _ := strconv.Atoi(m[2])
		n += loops
	}
	return n
}
