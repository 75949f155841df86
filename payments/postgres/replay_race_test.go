package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// besides runs work while a transaction holds what sql locked, and commits that once somebody waits for it.
func (b *bench) besides(work func(), sql ...string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, b.dsn)
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, s := range append([]string{"BEGIN"}, sql...) {
		if _, err := conn.Exec(ctx, s); err != nil {
			b.t.Fatal(err)
		}
	}
	var own uint32
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&own); err != nil {
		b.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); work() }()
	for blocked := false; !blocked; {
		select {
		case <-done:
			b.t.Error("it did not wait")
			blocked = true
			continue
		default:
		}
		err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_locks l WHERE NOT l.granted AND $1 = ANY (pg_blocking_pids(l.pid)))", int32(own)).Scan(&blocked)
		if err != nil {
			b.t.Fatalf("nobody waited: %v", err)
		}
	}
	if _, err := conn.Exec(ctx, "COMMIT"); err != nil {
		b.t.Fatal(err)
	}
	<-done
}

// TestReplayMeetsDiscard: of a replay and a discard of the same dead letter at the same moment one has it, whichever commits first.
func TestReplayMeetsDiscard(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	b.message("dl_m", "m", "{}", payments.ReasonInvalid, 1)
	b.message("dl_n", "n", "{}", payments.ReasonInvalid, 2)
	b.besides(func() {
		r := b.newReplay(payments.NewReplay{Filter: payments.LetterFilter{ID: "dl_m"}})
		if r.Total != 0 || r.State != payments.ReplayCompleted {
			t.Errorf("what was discarded meanwhile is replayed: %+v", r)
		}
	}, `UPDATE dead_letters SET state = 'discarded' WHERE id = 'dl_m'`)
	other := b.newReplay(payments.NewReplay{Filter: payments.LetterFilter{ID: "dl_none"}})
	b.besides(func() {
		done, err := b.Discard(ctx, payments.LetterFilter{ID: "dl_n"}, 0, ann)
		if err != nil || done.Discarded != 0 || len(done.Refused) != 1 {
			t.Errorf("what is in a replay since is discarded: %+v, %v", done, err)
		}
	}, `SELECT FROM dead_letters WHERE id = 'dl_n' FOR SHARE`, `INSERT INTO replay_items (replay_id, letter_id) VALUES ('`+other.ID+`', 'dl_n')`)
}
