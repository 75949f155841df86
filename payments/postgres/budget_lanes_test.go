package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// fill puts due tickets of the lane there, each for as many tenants, past Admit. The tenants are made where they are not there; their account is
// the installation's if own is "".
func (b *bench) fill(tenants, each int, prefix string, lane payments.Lane, own string) {
	b.t.Helper()
	run := func(sql string, args ...any) {
		b.t.Helper()
		if _, err := b.pool.Exec(context.Background(), sql, args...); err != nil {
			b.t.Fatal(err)
		}
	}
	run(`INSERT INTO tenants (id, created_at, stripe_account, account, livemode) SELECT $1::text || lpad(n::text, 4, '0'), now(), nullif($3::text, ''),
		nullif($3::text, ''), CASE WHEN $3::text <> '' THEN true END FROM generate_series(1, $2::int) n ON CONFLICT DO NOTHING`, prefix, tenants, own)
	run(`INSERT INTO payments (created_at, updated_at, amount, lane, request_version, fingerprint_version, off_session, id, fingerprint, tenant_id,
		idempotency_key, kind, status, currency, capture_method)
		SELECT '2020-01-01'::timestamptz, now(), 1, $4::int, 1, 1, true, decode(md5($1::text || t || '/' || n || '/' || $4::int), 'hex'), sha256('x'),
			$1::text || lpad(t::text, 4, '0'), 'fill' || n || '-' || $4::int, 'charge', 'received', 'usd', 'automatic'
		FROM generate_series(1, $2::int) t, generate_series(1, $3::int) n ON CONFLICT DO NOTHING`, prefix, tenants, each, int(lane))
	run(`INSERT INTO queue (due_at, lane, payment_id, tenant_id) SELECT created_at + row_number() OVER () * interval '1 ms', lane, id, tenant_id
		FROM payments WHERE tenant_id LIKE $1::text || '%' AND lane = $2::int AND status = 'received' ON CONFLICT DO NOTHING`, prefix, int(lane))
}

// TestExhaustedAccountHidesNobody: however many tenants and tickets wait for the tokens of one account, those of another are given at once, in a
// Take of any size; and what waits is waited for.
func TestExhaustedAccountHidesNobody(t *testing.T) {
	t.Parallel()
	for name, shared := range map[string]string{"the installation's account": "", "an account of their own": "acct_crowd"} {
		for _, limit := range []int{1, 64} {
			t.Run(fmt.Sprint(name, " ", limit), func(t *testing.T) {
				t.Parallel()
				b := paced(t, 10) // 2 at once
				b.fill(1000, 3, "a", payments.LaneInteractive, shared)
				b.fill(1, 3, "z", payments.LaneInteractive, "acct_alone")
				var keys []string
				var last payments.Taking
				for range 8 {
					last = b.taking(payments.LaneInteractive, limit)
					for _, c := range last.Claims {
						keys = append(keys, c.Payment.TenantID+" "+c.Payment.StripeAccount)
					}
				}
				crowd := shared
				if crowd == "" {
					crowd = account.ID
				}
				counts := map[string]int{}
				for _, k := range keys {
					counts[k[:1]+k[5:]]++
				}
				if len(keys) != 4 || counts["a "+crowd] != 2 || counts["z acct_alone"] != 2 {
					t.Errorf("given: %v", keys)
				}
				if last.Wait != 100*time.Millisecond {
					t.Errorf("wait %s, want 100ms", last.Wait)
				}
				// Tenants in turn stays: the tokens of the next second go to ten tenants.
				served := map[string]int{}
				for range 10 {
					b.clock.Advance(100 * time.Millisecond)
					for range 3 {
						for _, c := range b.taking(payments.LaneInteractive, limit).Claims {
							served[c.Payment.TenantID]++
						}
					}
				}
				if served["z0001"] != 1 || len(served) != 11 {
					t.Errorf("served: %v", served)
				}
			})
		}
	}
}

// TestEmptyBudgetCostsLittle: a Take that finds no room reads a few pages, whatever the backlog, locks nothing and writes nothing but a mark.
func TestEmptyBudgetCostsLittle(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := paced(t, 10)
	b.fill(50, 1000, "a", payments.LaneInteractive, "")
	if got := b.taking(payments.LaneInteractive, 64); len(got.Claims) != 2 || got.Wait != 100*time.Millisecond {
		t.Fatalf("%d given, wait %s", len(got.Claims), got.Wait)
	}
	conn, err := b.pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	var plan []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	explain := func() int {
		t.Helper()
		if err := conn.QueryRow(ctx, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+query("take_due"), int16(1), 64, b.now(), "", account.ID, account.Livemode, b.opts.Rate,
			"a0030", []string{}, []bool{}, []string{}, []string{}, []bool{}, "", false).
			Scan(&plan); err != nil {
			t.Fatal(err)
		}
		return plan[0].Plan.Hit + plan[0].Plan.Read
	}
	if n := explain(); n > 100 {
		t.Errorf("an empty budget: %d pages", n)
	}
	b.clock.Advance(100 * time.Millisecond)
	if n := explain(); n > 400 {
		t.Errorf("one token: %d pages", n)
	}
	b.clock.Advance(-100 * time.Millisecond)
	stored := func() (xmin string) {
		t.Helper()
		if err := b.pool.QueryRow(ctx, "SELECT xmin::text || xmax::text || ctid::text FROM rate_budgets").Scan(&xmin); err != nil {
			t.Fatal(err)
		}
		return xmin
	}
	before := stored()
	for range 20 {
		if got := b.taking(payments.LaneInteractive, 64); len(got.Claims) != 0 || got.Wait != 100*time.Millisecond {
			t.Fatalf("%d given, wait %s", len(got.Claims), got.Wait)
		}
	}
	if after := stored(); after != before {
		t.Errorf("a Take without room wrote: %s, %s", before, after)
	}
	var locked int
	if err := b.pool.QueryRow(ctx, "SELECT count(*) FROM queue WHERE xmax <> 0 AND token IS NULL").Scan(&locked); err != nil || locked != 0 {
		t.Errorf("%d tickets were locked, %v", locked, err)
	}
}

// TestInteractiveFirst: while interactive tickets wait bulk gets none, neither by Take nor by Admit; all that they do not use goes to bulk, and so
// does everything once nobody comes for it.
func TestInteractiveFirst(t *testing.T) {
	t.Parallel()
	b := paced(t, 100) // 5 at once
	b.fill(1, 200, "bulk", payments.LaneBulk, "")
	if n := len(b.taking(payments.LaneBulk, 64).Claims); n != 5 {
		t.Fatalf("bulk alone: %d", n)
	}
	b.fill(1, 30, "shop", payments.LaneInteractive, "")
	interactive, bulk := 0, 0
	for range 200 { // 2 s, of which interactive work lasts a part
		b.clock.Advance(10 * time.Millisecond)
		// Bulk asks first, every time, and often.
		if b.clock.Now().UnixMilli()%20 == 0 {
			n := claimed(b.flush(b.requests(3, "acme", b.newToken().String(), payments.LaneBulk, account)...))
			if bulk += n; n > 0 && interactive > 0 && interactive < 30 {
				t.Errorf("Admit: bulk got %d while interactive tickets wait (%d given)", n, interactive)
			}
		}
		if interactive > 0 && interactive < 30 {
			got := b.taking(payments.LaneBulk, 64)
			if bulk += len(got.Claims); len(got.Claims) > 0 || got.Wait < yieldPause {
				t.Errorf("Take: bulk got %d while interactive tickets wait (%d given), wait %s", len(got.Claims), interactive, got.Wait)
			}
		}
		interactive += len(b.taking(payments.LaneInteractive, 8).Claims)
		if interactive == 30 {
			bulk += len(b.taking(payments.LaneBulk, 64).Claims)
		}
	}
	if interactive != 30 || interactive+bulk < 194 || interactive+bulk > 205 {
		t.Errorf("in 2 s: interactive %d of 30, bulk %d, want 200 together", interactive, bulk)
	}
	// Interactive tickets for which nobody comes hold bulk up for a moment only.
	b.fill(1, 40, "shop", payments.LaneInteractive, "")
	for len(b.taking(payments.LaneInteractive, 1).Claims) > 0 {
	}
	b.clock.Advance(50 * time.Millisecond)
	if n := len(b.taking(payments.LaneBulk, 64).Claims); n != 0 {
		t.Errorf("bulk got %d at once", n)
	}
	b.clock.Advance(100 * time.Millisecond)
	if n := len(b.taking(payments.LaneBulk, 64).Claims); n != 5 {
		t.Errorf("bulk got %d, want all that nobody came for", n)
	}
}

// TestNewComersQueueUp: while tickets wait for tokens new requests of their lane do not overtake them; if nobody comes for what waits, they soon do.
func TestNewComersQueueUp(t *testing.T) {
	t.Parallel()
	for _, lane := range []payments.Lane{payments.LaneInteractive, payments.LaneBulk} {
		b := paced(t, 100)
		b.fill(1, 20, "waits", lane, "")
		b.taking(lane, 64)
		n := 0
		admit := func(want int) {
			t.Helper()
			n++
			got := b.flush(b.requests(10, "acme", fmt.Sprint(n, "-"), lane, account)...)
			if claimed(got) != want || got[9].Wait < waitMin {
				t.Errorf("%s: %d new ones, wait %s; want %d", lane, claimed(got), got[9].Wait, want)
			}
		}
		b.clock.Advance(40 * time.Millisecond) // four tokens
		admit(0)
		if n := len(b.taking(lane, 64).Claims); n != 4 {
			t.Errorf("%s: %d given", lane, n)
		}
		b.clock.Advance(100 * time.Millisecond) // nobody comes for the next
		admit(0)
		b.clock.Advance(waitMin)
		admit(5)
		b.clock.Advance(waitMin)
		admit(0)
		if n := len(b.taking(lane, 64).Claims); n != 2 {
			t.Errorf("%s: %d given", lane, n)
		}
	}
}

// TestBulkAloneHasTheRate: with nobody else, bulk uses what there is, however small the steps in which it comes.
func TestBulkAloneHasTheRate(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{3, 20, 250} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			t.Parallel()
			b := paced(t, rate)
			b.fill(2, int(rate*3), "bulk", payments.LaneBulk, "")
			n := 0
			for range 251 { // 5 s
				n += len(b.taking(payments.LaneBulk, 64).Claims)
				b.clock.Advance(20 * time.Millisecond)
			}
			if most := max(2, rate/20) + 5*rate; float64(n) > most || float64(n) < most-1 {
				t.Errorf("%d in 5 s, want %v", n, most)
			}
		})
	}
}
