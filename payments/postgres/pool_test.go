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
		})
	}
}
