package postgres

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// TestLettersOfABatchByIndex: the dead letters of a batch are found by an index, by its key and by its id, with and without statistics. An id that
// was computed for every dead letter took most of a second with 100,000 of them.
func TestLettersOfABatchByIndex(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	const letters = 20_000
	if _, err := b.pool.Exec(ctx, `INSERT INTO dead_letters (id, tenant_id, idempotency_key, reason, message, stream, stream_created, stream_seq, subject, payload,
			payload_length, payload_sha256, state, first_seen, last_seen)
		SELECT 'dl_' || i, 'acme', 'run.' || lpad((i / 100)::text, 6, '0') || '::' || i % 100, 'invalid', 'm', 'S', 'epoch', i, 's', '{}', 2, sha256('{}'), 'open',
			now(), now() FROM generate_series(1, $1::int) i`, letters); err != nil {
		t.Fatal(err)
	}
	const key = "run.000150"
	for _, statistics := range []bool{false, true} {
		if statistics {
			if _, err := b.pool.Exec(ctx, "ANALYZE dead_letters"); err != nil {
				t.Fatal(err)
			}
		}
		for _, batch := range []string{key, payments.NewID("acme", key).Format(payments.KindBatch)} {
			params := letterFilterParams(payments.LetterFilter{Batch: batch, State: payments.DeadLetterOpen})
			for name, more := range map[string][]any{"list_letters": {nil, nil, 101}, "replay_candidates": {1 << 20}} {
				rows, err := b.pool.Query(ctx, "EXPLAIN (ANALYZE, TIMING off) "+query(name), planned(params, more...)...)
				if err != nil {
					t.Fatal(err)
				}
				lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
				if err != nil {
					t.Fatal(err)
				}
				plan := strings.Join(lines, "\n")
				if strings.Contains(plan, "Seq Scan on dead_letters") || strings.Contains(plan, "dead_letters_last_seen_idx") || !strings.Contains(plan, "dead_letters_batch_") {
					t.Errorf("%s of %s reads all dead letters (statistics: %v):\n%s", name, batch, statistics, plan)
				}
			}
			if got := b.letters(DeadLettersRequest{LetterFilter: payments.LetterFilter{Batch: batch}}); len(got) != 100 {
				t.Errorf("%s: %d dead letters", batch, len(got))
			}
			if got := b.letters(DeadLettersRequest{LetterFilter: payments.LetterFilter{Batch: batch, TenantID: "other"}}); len(got) != 0 {
				t.Errorf("%s of another tenant: %d", batch, len(got))
			}
		}
	}
	var id []byte
	odd := `a\x00\b` + "ünicode"
	want := payments.NewID("acme", odd)
	if err := b.pool.QueryRow(ctx, "SELECT keyed_id($1, $2)", "acme", odd).Scan(&id); err != nil || !bytes.Equal(id, want[:]) {
		t.Errorf("keyed_id: %x, %v", id, err)
	}
}
