package postgres

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// intents is the outbox of one lane's intents.
type intents struct {
	store *Store
	lane  payments.Lane
}

// Intents returns the outbox of the lane's intents: those that Admit was to announce, and the children of batches.
func (s *Store) Intents(lane payments.Lane) payments.Outbox { return intents{s, lane} }

// Pending implements payments.Outbox, as the Store's own does for events; what was accepted together with the last of them comes beyond the limit.
func (o intents) Pending(ctx context.Context, limit int, hold time.Duration) ([]payments.OutboxItem, error) {
	limit = min(limit, pendingMax)
	if limit <= 0 {
		return nil, nil
	}
	var items []payments.OutboxItem
	s := o.store
	err := s.write(ctx, func(ctx context.Context) error {
		items = nil
		rows, err := s.pool.Query(ctx, query("intents_pending"), int16(o.lane), limit, hold.Microseconds(), s.now())
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var row, parts, part int64
			r, err := scanRow(rows, &row, &parts, &part)
			if err != nil {
				return err
			}
			body, err := announcement(r.payment.Intent)
			if err != nil { // it was written once before it was stored
				s.opts.Logger.Error("an intent in the outbox cannot be written", "outbox", row, "payment", r.payment.ID.String(), "error", err)
				continue
			}
			items = append(items, announcedItem(parcel{row, int(parts), int(part)}, r.payment.TenantID, r.payment.Lane, body))
		}
		return rows.Err()
	})
	return items, err
}

// Sent implements payments.Outbox: a row goes once all its messages are stored.
func (o intents) Sent(ctx context.Context, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	whole, rows, parts := delivered(ids)
	slices.Sort(whole)
	return o.store.write(ctx, func(ctx context.Context) error {
		b := &pgx.Batch{}
		for run := range near(whole) {
			b.Queue(query("intents_sent"), int16(o.lane), run, run[0], run[len(run)-1])
		}
		if len(rows) > 0 {
			b.Queue(query("intents_sent_in_part"), int16(o.lane), rows, parts)
			b.Queue(query("intents_all_sent"), int16(o.lane), rows)
		}
		return o.store.pool.SendBatch(ctx, b).Close()
	})
}

// nearBy is how far apart two numbers in a row are at most, for a statement that reads all between the first and the last.
const nearBy = 100

// near cuts sorted numbers where many are missing, so that one old row beside a thousand new ones does not have all between them read.
func near(sorted []int64) iter.Seq[[]int64] {
	return func(yield func([]int64) bool) {
		from := 0
		for i := 1; i <= len(sorted); i++ {
			if i < len(sorted) && sorted[i]-sorted[i-1] <= nearBy {
				continue
			}
			if !yield(sorted[from:i]) {
				return
			}
			from = i
		}
	}
}

// UnpublishedMax is how far Unpublished counts: a limit above it would never be reached.
const UnpublishedMax = 1_000_000

// Unpublished returns how many intents of both lanes are not yet known to be stored in their streams; it counts to UnpublishedMax.
func (s *Store) Unpublished(ctx context.Context) (int64, error) {
	var n int64
	err := s.pool.QueryRow(ctx, query("unpublished"), UnpublishedMax).Scan(&n)
	return n, translate(err)
}
