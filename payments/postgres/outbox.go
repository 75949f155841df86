package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// pendingMax bounds one Pending.
const pendingMax = 1000

// Pending implements payments.Outbox: at most limit messages, oldest first, that nobody has been given within the hold. They are the caller's
// for that long, and nobody waits for it: no lock is kept.
func (s *Store) Pending(ctx context.Context, limit int, hold time.Duration) ([]payments.OutboxItem, error) {
	limit = min(limit, pendingMax)
	if limit <= 0 {
		return nil, nil
	}
	var items []payments.OutboxItem
	var letters map[string][]int64
	err := s.write(ctx, func(ctx context.Context) error {
		items, letters = nil, map[string][]int64{}
		rows, err := s.pool.Query(ctx, query("outbox_pending"), limit, hold.Microseconds(), s.now())
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var it payments.OutboxItem
			var kind, letter string
			var body *string
			if err := rows.Scan(&it.ID, &kind, &it.TenantID, &letter, &it.EventType, &it.EventID, &body); err != nil {
				return err
			}
			it.Kind = payments.OutboxKind(kind)
			switch {
			case letter != "":
				letters[letter] = append(letters[letter], it.ID)
			case body != nil:
				it.Body = []byte(*body)
				items = append(items, it)
			default:
				s.opts.Logger.Error("an outbox row has no event", "outbox", it.ID, "tenant", it.TenantID)
			}
		}
		return rows.Err()
	})
	if err != nil || len(letters) == 0 {
		return items, err
	}
	return s.addLetters(ctx, items, letters)
}

// addLetters reads the dead letters that items are copies of.
func (s *Store) addLetters(ctx context.Context, items []payments.OutboxItem, letters map[string][]int64) ([]payments.OutboxItem, error) {
	ids := make([]string, 0, len(letters))
	for id := range letters {
		ids = append(ids, id)
	}
	rows, err := s.pool.Query(ctx, query("letters_by_id"), ids)
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	for rows.Next() {
		d, err := scanLetter(rows)
		if err != nil {
			return nil, translate(err)
		}
		for _, outbox := range letters[d.ID] {
			it, err := letterItem(d, outbox)
			if err != nil {
				return nil, err
			}
			items = append(items, it)
		}
	}
	slices.SortFunc(items, func(a, b payments.OutboxItem) int { return int(a.ID - b.ID) })
	return items, translate(rows.Err())
}

// Sent implements payments.Outbox.
func (s *Store) Sent(ctx context.Context, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	sorted := slices.Clone(ids)
	slices.Sort(sorted)
	return s.write(ctx, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, query("outbox_sent"), sorted)
		return err
	})
}

// OutboxDepth returns how many events and copies of dead letters are not yet known to be stored in their stream.
func (s *Store) OutboxDepth(ctx context.Context) (int64, error) {
	var n int64
	err := s.pool.QueryRow(ctx, query("outbox_depth")).Scan(&n)
	return n, translate(err)
}
