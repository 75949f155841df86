package postgres

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/oncepay/oncepay/payments"
)

func (b *bench) unpublished() int {
	b.t.Helper()
	n, err := b.Unpublished(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	return int(n)
}

// TestParcelNumbers: a number tells what it was made of, and numbers are in the order of rows and parts.
func TestParcelNumbers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(label string) parcel {
			parts := rapid.IntRange(1, partsMax).Draw(rt, label+" parts")
			return parcel{rapid.Int64Range(1, 1<<43-1).Draw(rt, label+" row"), parts, rapid.IntRange(0, parts-1).Draw(rt, label+" part")}
		}
		p, q := draw("one"), draw("other")
		if parcelOf(p.number()) != p || p.number() <= 0 || p.row < q.row && p.number() >= q.number() {
			rt.Fatalf("%+v is %d, %+v is %d", p, p.number(), q, q.number())
		}
	})
	if flushItemsMax > partsMax {
		t.Errorf("a flush of %d items does not fit into a row of at most %d", flushItemsMax, partsMax)
	}
}

// TestDelivered: a row is whole when all its parts are stored, however often and in whatever order they are told.
func TestDelivered(t *testing.T) {
	t.Parallel()
	number := func(row int64, parts, part int) int64 { return parcel{row, parts, part}.number() }
	whole, rows, parts := delivered([]int64{number(7, 3, 2), number(5, 1, 0), number(7, 3, 0), number(9, 2, 1), number(7, 3, 0), number(7, 3, 1), number(9, 2, 1)})
	if !slices.Equal(whole, []int64{7, 5}) || !slices.Equal(rows, []int64{9}) || !slices.Equal(parts, []int16{1}) {
		t.Errorf("%v whole; %v of %v", whole, parts, rows)
	}
}

// flushed are the items of one flush of n requests of each tenant, as they were handed on.
func (b *bench) flushed(n int, tenants ...string) []payments.OutboxItem {
	b.t.Helper()
	before := len(b.sent.all())
	var requests []payments.AdmitRequest
	for _, tenant := range tenants {
		for i := range n {
			a := announced("order-"+strconv.Itoa(before)+"-"+strconv.Itoa(i), payments.LaneInteractive)
			a.Intent.TenantID = tenant
			requests = append(requests, a)
		}
	}
	b.flush(requests...)
	return b.sent.all()[before:]
}

// TestOneRowForAFlush: what a tenant has accepted in one flush is one row of the outbox, which gives out each message by itself, byte for byte as it was
// handed on, and keeps those that are not stored.
func TestOneRowForAFlush(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	outbox := b.Intents(payments.LaneInteractive)
	sent := b.flushed(20, "acme", "globex")
	if rows, n := b.rows("outbox_intents"), b.unpublished(); rows != 2 || n != 40 || len(sent) != 40 {
		t.Fatalf("%d rows for %d messages, %d handed on", rows, n, len(sent))
	}
	b.clock.Advance(b.opts.Hold)
	got := b.pendingIntents(payments.LaneInteractive)
	if !slices.EqualFunc(got, sent, func(a, b payments.OutboxItem) bool {
		return a.ID == b.ID && a.TenantID == b.TenantID && a.Lane == b.Lane && a.Kind == b.Kind && bytes.Equal(a.Body, b.Body)
	}) {
		t.Errorf("%+v\n%+v", got, sent)
	}
	left := map[int64]bool{}
	for _, it := range sent {
		left[it.ID] = true
	}
	settle := func(items ...payments.OutboxItem) {
		t.Helper()
		var ids []int64
		for _, it := range items {
			ids = append(ids, it.ID)
			delete(left, it.ID)
		}
		for range 2 { // of which the second changes nothing
			if err := outbox.Sent(ctx, ids); err != nil {
				t.Fatal(err)
			}
		}
		if n := b.unpublished(); n != len(left) {
			t.Errorf("%d unpublished, %d should be", n, len(left))
		}
		b.clock.Advance(time.Minute)
		again := b.pendingIntents(payments.LaneInteractive)
		for _, it := range again {
			if !left[it.ID] {
				t.Errorf("%+v is given out again", parcelOf(it.ID))
			}
		}
		if len(again) != len(left) {
			t.Errorf("%d given out, %d should be", len(again), len(left))
		}
	}
	settle(sent[3:7]...)
	settle(sent[5:30]...) // some of them once more, and into the other tenant's
	settle(sent[30:]...)
	if rows := b.rows("outbox_intents"); rows != 1 {
		t.Errorf("%d rows, that of acme alone should be there", rows)
	}
	settle(sent[:3]...)
	if rows := b.rows("outbox_intents"); rows != 0 {
		t.Errorf("%d rows of which all is stored", rows)
	}
}

// TestPendingFillsItsLimit: there are fewer items than the limit only if there are no more, so that who asks knows when to go on, and never many more.
func TestPendingFillsItsLimit(t *testing.T) {
	t.Parallel()
	b := open(t)
	const flushes, size, limit = 7, 10, 25
	for range flushes {
		b.flushed(size, "acme")
	}
	b.clock.Advance(b.opts.Hold)
	var got []int
	seen := map[int64]bool{}
	for range 4 {
		items, err := b.Intents(payments.LaneInteractive).Pending(context.Background(), limit, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, len(items))
		for _, it := range items {
			if seen[it.ID] {
				t.Errorf("%+v is given out twice", parcelOf(it.ID))
			}
			seen[it.ID] = true
		}
	}
	if !slices.Equal(got, []int{30, 30, 10, 0}) {
		t.Errorf("%v of %d at a time", got, flushes*size)
	}
}

// TestPendingCountsWhatIsLeft: rows of which most is stored already do not fill a poll with little.
func TestPendingCountsWhatIsLeft(t *testing.T) {
	t.Parallel()
	b := open(t)
	const flushes, size = 12, 50
	var ids []int64
	for range flushes {
		for _, it := range b.flushed(size, "acme")[1:] {
			ids = append(ids, it.ID)
		}
	}
	if err := b.Intents(payments.LaneInteractive).Sent(context.Background(), ids); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(b.opts.Hold)
	items, err := b.Intents(payments.LaneInteractive).Pending(context.Background(), 100, time.Minute)
	for _, it := range items {
		if it.Row != parcelOf(it.ID).row {
			t.Errorf("an item says it is in row %d, and is in %d", it.Row, parcelOf(it.ID).row)
		}
	}
	if err != nil || len(items) != flushes || b.unpublished() != flushes {
		t.Errorf("%d items, %v, of %d", len(items), err, b.unpublished())
	}
}

// TestNear: sorted numbers are cut where many are missing, and none is lost.
func TestNear(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		numbers []int64
		want    [][]int64
	}{
		{nil, nil},
		{[]int64{7}, [][]int64{{7}}},
		{[]int64{1, 101, 201}, [][]int64{{1, 101, 201}}},
		{[]int64{1, 102, 103, 9000}, [][]int64{{1}, {102, 103}, {9000}}},
	} {
		if got := slices.Collect(near(c.numbers)); !slices.EqualFunc(got, c.want, slices.Equal[[]int64]) {
			t.Errorf("%v: %v", c.numbers, got)
		}
	}
}

// TestSentReadsOnlyItsRows: whatever size the outbox had when the plan was made, and is kept, what is sent is found by its number. The plan of a table
// of a few rows once read all of the lane, and with it all that had been deleted since: 2 ms for 37 rows after 40,000, more with each.
func TestSentReadsOnlyItsRows(t *testing.T) {
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
	for _, rows := range []int{0, 1, 5, 40, 300, 2000} {
		run("TRUNCATE outbox_intents")
		run(fmt.Sprintf("INSERT INTO outbox_intents (lane, tenant_id, payment_id) SELECT 1, 'acme', sha256(i::text::bytea) FROM generate_series(1, %d) i", rows))
		for _, analyzed := range []bool{false, true} {
			if analyzed {
				run("VACUUM ANALYZE outbox_intents")
			}
			for _, name := range []string{"intents_sent", "intents_sent_in_part", "intents_all_sent", "intents_pending"} {
				_, _ = conn.Exec(ctx, "DEALLOCATE ALL")
				plan := explain(t, conn.Conn(), name)
				_ = conn.Conn().Deallocate(ctx, name)
				byNumber := slices.ContainsFunc(plan, func(line string) bool {
					return strings.Contains(line, "Index Cond") && (strings.Contains(line, "(id >= ") && strings.Contains(line, "(id <= ") || strings.Contains(line, "(id = ANY"))
				})
				joined := slices.ContainsFunc(plan, func(line string) bool {
					return strings.Contains(line, "Join Filter") && strings.Contains(line, "enough")
				})
				if !byNumber || joined {
					t.Fatalf("with %d rows, analyzed %t, %s does not look rows up by their number:\n%s", rows, analyzed, name, strings.Join(plan, "\n"))
				}
			}
		}
	}
}
