package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// TestPlans: no statement of a flush reads a whole table, whatever PostgreSQL knew of the tables when the plan was made: here, nothing.
func TestPlans(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	conn, err := b.pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, "SET plan_cache_mode = force_generic_plan"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"admit", "admit_read", "read_by_id", "lock_tickets", "end_tickets", "write_payments", "record_clock", "refuse_taken", "delete_tickets", "set_tickets", "write_events", "take",
		"extend", "extend_submitting", "lock_ticket", "lock_payment", "outbox_pending", "outbox_sent", "find", "find_anywhere", "timeline", "clear_suspects",
		"admit_paced", "take_due", "take_paced", "make_budgets", "budgets", "throttle", "tenant", "pin_account",
		"announce", "admit_announced", "accept", "accept_new", "intents_pending", "intents_sent", "admit_batch", "find_batches", "batch_children", "batch_totals", "list_batches", "list_run",
		"open_batches", "lock_batches", "complete_totals", "complete_batches", "find_api_key", "take_alone", "take_rest", "take_due_alone",
		"find_follow_up", "follow_ups_of", "accept_follow_up", "follow_up_state", "next_follow_up", "cancel_open", "kept_back", "wake_kept_back", "refunds_of", "name_refund", "add_refunded",
	} {
		plan := explain(t, conn.Conn(), name)
		few := strings.NewReplacer("Seq Scan on pauses", "a look at pauses", "Seq Scan on rewinds", "a look at rewinds") // a row for each pause that stands, and for each restore
		text := few.Replace(strings.Join(plan, "\n"))
		if strings.Contains(text, "Seq Scan on") && !strings.Contains(text, "Seq Scan on tenants") {
			t.Errorf("%s reads a whole table:\n%s", name, text)
		}
		// On an empty table all indexes cost the same; a look-up by id through any other one reads all payments of a tenant.
		for i, line := range plan {
			if !strings.Contains(line, "Scan") {
				continue
			}
			byID := strings.Contains(line, "on payments p") || strings.Contains(line, "on payments x")
			byCharge := strings.Contains(plan[min(i+1, len(plan)-1)], "payment_id = ") || strings.Contains(plan[min(i+1, len(plan)-1)], "(id = ")
			if strings.Contains(line, "on operations") && !byCharge {
				t.Errorf("%s: %s %s", name, strings.TrimSpace(line), strings.TrimSpace(plan[i+1]))
			}
			if byID && (!strings.Contains(line, "using payments_pkey") || !strings.Contains(plan[i+1], "(id = ")) {
				t.Errorf("%s: %s %s", name, strings.TrimSpace(line), strings.TrimSpace(plan[i+1]))
			}
			if strings.Contains(line, "on queue") && (!strings.HasPrefix(name, "take") || name == "take_paced") && name != "kept_back" && (!strings.Contains(line, "using queue_pkey") || !strings.Contains(plan[i+1], "(payment_id = ")) {
				t.Errorf("%s: %s %s", name, strings.TrimSpace(line), strings.TrimSpace(plan[i+1]))
			}
		}
		if text := strings.Join(plan, "\n"); strings.HasPrefix(name, "admit") && !strings.Contains(text, "(hashed SubPlan") && name != "admit_read" {
			t.Errorf("%s compares each row of its flush with each:\n%s", name, text)
		}
		if text := strings.Join(plan, "\n"); (name == "take" || name == "take_paced") && strings.Count(text, "using queue_pkey") != 2 {
			t.Errorf("%s finds the tickets that it locks and changes otherwise than by the primary key:\n%s", name, text)
		}
		if text := strings.Join(plan, "\n"); name == "kept_back" &&
			!strings.Contains(text, "Index Cond: ((lane = $1) AND (tenant_id = tenant.tenant_id) AND (due_at >= ") {
			t.Errorf("%s reads more tickets than those that are kept back:\n%s", name, text)
		}
	}
}

// TestConnectionSettings: what keeps a forgotten transaction from doing harm is in force on every connection.
func TestConnectionSettings(t *testing.T) {
	t.Parallel()
	b := open(t)
	for name, want := range map[string]string{
		"idle_in_transaction_session_timeout": "30s", "statement_timeout": "1min", "default_transaction_isolation": "read committed", "TimeZone": "UTC",
	} {
		var got string
		if err := b.pool.QueryRow(context.Background(), "SELECT current_setting($1)", name).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %s, %v, want %s", name, got, err, want)
		}
	}
}

// loop takes n payments through Admit and Record with c callers at once, and returns the time that took.
func (b *bench) loop(n, callers int, prefix string) time.Duration {
	b.t.Helper()
	ctx := context.Background()
	var next atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for range callers {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				in := intent([]string{"acme", "globex"}[i%2], prefix+strconv.FormatInt(i, 10), 9900)
				a, err := b.Admit(ctx, b.claiming(in))
				if err != nil || a.Verdict != payments.VerdictClaimed {
					b.t.Errorf("Admit: %s %v", a.Verdict, err)
					return
				}
				if _, err := b.Record(ctx, payments.Recording{Claim: a.Claim, Transition: succeeded(a.Claim.Payment), At: b.wall()}); err != nil {
					b.t.Errorf("Record: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// TestHOT: the update of a payment stays on its page and touches no index.
func TestHOT(t *testing.T) {
	t.Parallel()
	b := open(t)
	busy := &bench{Store: b.another(Options{Clock: b.clock, PoolSize: 4}), t: t, clock: b.clock}
	busy.loop(4000, 128, "k")
	if err := busy.Close(context.Background()); err != nil { // a session that ends sends its statistics
		t.Fatal(err)
	}
	var updates, hot int64
	b.until("the statistics of 4,000 updates", func() bool {
		if err := b.pool.QueryRow(context.Background(), "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'payments'").Scan(&updates, &hot); err != nil {
			t.Fatal(err)
		}
		return updates >= 4000
	})
	if hot*100 < updates*95 {
		t.Errorf("%d of %d updates were HOT, want 95%%", hot, updates)
	}
}

// BenchmarkAdmitRecord takes payments through Admit and Record with 512 callers at once: rows/s.
func BenchmarkAdmitRecord(b *testing.B) {
	s := open(b, func(o *Options) { o.Clock, o.Committed = nil, nil; o.PoolSize = 16 })
	s.loop(1000, 512, "warm")
	b.ResetTimer()
	took := s.loop(b.N, 512, fmt.Sprintf("n%d-", b.N))
	b.ReportMetric(float64(b.N)/took.Seconds(), "payments/s")
}

// pages is how many pages the database's sessions have asked for so far.
func (b *bench) pages(worker *Store) (n int64) {
	b.t.Helper()
	ctx := context.Background()
	if _, err := worker.pool.Exec(ctx, "SELECT pg_stat_force_next_flush()"); err != nil {
		b.t.Fatal(err)
	}
	if _, err := worker.pool.Exec(ctx, "SELECT 1"); err != nil { // what is to be flushed is at the end of the next statement
		b.t.Fatal(err)
	}
	if err := b.pool.QueryRow(ctx, "SELECT blks_hit + blks_read FROM pg_stat_database WHERE datname = current_database()").Scan(&n); err != nil {
		b.t.Fatal(err)
	}
	return n
}

// TestFlushesDoNotGrow works 50,000 payments through the flushes of Admit and Record, on one connection with the plans that it made when the tables
// were empty, without ANALYZE or vacuum. A row costs as many pages in the end as in the beginning.
func TestFlushesDoNotGrow(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := open(t)
	for _, table := range []string{"payments", "queue", "payment_events", "outbox"} {
		if _, err := b.pool.Exec(ctx, "ALTER TABLE "+table+" SET (autovacuum_enabled = false)"); err != nil {
			t.Fatal(err)
		}
	}
	one := &bench{Store: b.another(Options{Clock: b.clock, PoolSize: 1}), t: t, clock: b.clock}
	const each, window, all = 500, 4, 100
	next := 0
	work := func(flushes int) {
		t.Helper()
		for range flushes {
			claims := one.flush(one.requests(each, []string{"acme", "globex"}[next%2], strconv.Itoa(next)+"-", payments.LaneInteractive, account)...)
			next++
			recordings := make([]*payments.Recording, len(claims))
			for j, a := range claims {
				recordings[j] = &payments.Recording{Claim: a.Claim, Transition: succeeded(a.Claim.Payment), At: b.clock.Now()}
			}
			if _, err := one.flushRecord(ctx, recordings); err != nil {
				t.Fatal(err)
			}
		}
	}
	measured := func() float64 {
		t.Helper()
		before := b.pages(one.Store)
		work(window)
		return float64(b.pages(one.Store)-before) / (window * each)
	}
	work(window)
	early := measured()
	work(all - 3*window)
	late := measured()
	t.Logf("pages a payment: %.1f early, %.1f late", early, late)
	if early < 1 || late >= 2*early {
		t.Errorf("a payment took %.1f pages early and %.1f late", early, late)
	}
}
