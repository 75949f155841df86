package postgres

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// TestCommitsSurvive: a database that is set to answer commits before they are on disk does not make ours answer so.
func TestCommitsSurvive(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := open(t)
	var name, got string
	if err := b.pool.QueryRow(ctx, "SELECT current_database()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	if _, err := b.pool.Exec(ctx, "ALTER DATABASE "+pgx.Identifier{name}.Sanitize()+" SET synchronous_commit = off"); err != nil {
		t.Fatal(err)
	}
	if err := b.another(Options{}).pool.QueryRow(ctx, "SHOW synchronous_commit").Scan(&got); err != nil || got != "on" {
		t.Errorf("synchronous_commit is %q, %v", got, err)
	}
}

// TestEveryExecMode: a pooler may need one of pgx's other ways to send statements, some of which ask nobody for the types of parameters.
func TestEveryExecMode(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			dsn, err := url.Parse(b.dsn)
			if err != nil {
				t.Fatal(err)
			}
			values := dsn.Query()
			values.Set("default_query_exec_mode", mode)
			dsn.RawQuery = values.Encode()
			usual := b.Store
			defer func() { b.Store = usual }() // which lives to the end of the test
			b.Store = b.via(dsn.String(), Options{Clock: b.clock, Committed: b.sent.add, PoolSize: 4})
			ended, stays, due := b.claim("ends"), b.claim("stays"), b.claim("due")
			if done := b.record(ended, succeeded(ended.Payment), 0); done.Sequence != 1 || done.Payment.Status != payments.StatusSucceeded {
				t.Errorf("%+v", done)
			}
			b.record(stays, waiting(payments.ReasonRateLimited), time.Minute)
			if _, err := b.Extend(context.Background(), due, time.Hour, true); err != nil {
				t.Error(err)
			}
			b.clock.Advance(2 * time.Minute)
			if taken := b.take(payments.TakeRequest{Limit: 10}); len(taken) != 1 || taken[0].Payment.ID != stays.Payment.ID {
				t.Errorf("%+v", taken)
			}
			if again := b.admit(b.claiming(intent("acme", "ends", 9900))); again.Verdict != payments.VerdictExists {
				t.Errorf("%+v", again)
			}
			if err := b.BuryPayment(context.Background(), due, payments.DeadLetter{Reason: payments.ReasonHandlerPanic}, time.Minute); err != nil {
				t.Error(err)
			}
			if items, err := b.Pending(context.Background(), 10, time.Minute); err != nil {
				t.Errorf("%v, %v", items, err)
			}
			b.batchesInThisMode()
		})
	}
}

// batchesInThisMode runs every statement of batches, announced intents and API keys.
func (b *bench) batchesInThisMode() {
	b.t.Helper()
	ctx := context.Background()
	announced := payments.AdmitRequest{Intent: intent("acme", "announced", 1), Lane: payments.LaneInteractive, Announce: true}
	b.admit(announced)
	requests := []payments.BatchRequest{batchOf("run.0", 3), batchOf("run.1", 2)}
	for i := range requests {
		requests[i].Parent = "run"
		requests[i].Payments[0].Metadata, requests[i].Payments[0].ExpiresAt = map[string]string{"a": "\\'é"}, b.clock.Now().Add(time.Hour)
		b.admitBatch(requests[i], payments.VerdictStored)
		b.admitBatch(requests[i], payments.VerdictExists)
		b.clock.Advance(time.Second)
	}
	b.clock.Advance(time.Minute)
	for lane, want := range map[payments.Lane]int{payments.LaneInteractive: 1, payments.LaneBulk: 5} {
		outbox := b.Intents(lane)
		items, err := outbox.Pending(ctx, 10, time.Minute)
		if err != nil || len(items) != want {
			b.t.Errorf("lane %d: %d pending, %v", lane, len(items), err)
			continue
		}
		if err := outbox.Sent(ctx, []int64{items[0].ID}); err != nil {
			b.t.Error(err)
		}
	}
	if n, err := b.Unpublished(ctx); n != 4 || err != nil {
		b.t.Errorf("%d unpublished, %v", n, err)
	}
	open, err := b.OpenBatches(ctx, payments.BatchRef{}, 10)
	if err != nil || len(open) != 2 {
		b.t.Fatalf("%+v, %v", open, err)
	}
	b.settle(5, succeeded)
	if n := b.complete(open...); n != 2 {
		b.t.Errorf("%d told", n)
	}
	for _, parent := range []string{"", "run"} {
		q := payments.BatchListRequest{TenantID: "acme", Parent: parent, Limit: 1}
		first, next, err := b.Batches(ctx, q)
		q.Cursor = next
		second, end, err2 := b.Batches(ctx, q)
		if err != nil || err2 != nil || len(first) != 1 || len(second) != 1 || end != "" || !first[0].Complete() || second[0].IdempotencyKey != "run.1" {
			b.t.Errorf("%+v, %v, %+v, %v, %q", first, err, second, err2, end)
		}
	}
	if found, err := b.FindMany(ctx, []string{"acme", "globex"}, []payments.ID{announced.Intent.ID(), announced.Intent.ID()}); err != nil || len(found) != 1 {
		b.t.Errorf("%+v, %v", found, err)
	}
	_, secret, err := b.CreateAPIKey(ctx, "acme", []payments.Scope{payments.ScopePaymentsWrite}, time.Time{})
	if k, err2 := b.APIKeyBySecret(ctx, secret); err != nil || err2 != nil || k.TenantID != "acme" {
		b.t.Errorf("%+v, %v, %v", k, err, err2)
	}
}
