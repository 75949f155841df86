package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncepay/oncepay/payments"
)

// WakeKeptBack implements payments.FollowUps. What it finds is locked and asked about again, since a cancel may be accepted meanwhile: whoever accepts one
// locks the ticket, too.
func (s *Store) WakeKeptBack(ctx context.Context) (woken int, err error) {
	for _, lane := range []payments.Lane{payments.LaneInteractive, payments.LaneBulk} {
		keys, err := s.keptBack(ctx, lane)
		if err != nil {
			return woken, translate(err)
		}
		if len(keys) == 0 {
			continue
		}
		slices.SortFunc(keys, key.compare)
		n, err := s.wakeKeptBack(ctx, keys)
		woken += n
		if err != nil {
			return woken, err
		}
	}
	return woken, nil
}

func (s *Store) keptBack(ctx context.Context, lane payments.Lane) ([]key, error) {
	rows, err := s.pool.Query(ctx, query("kept_back"), int16(lane))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (key, error) {
		var k key
		var id []byte
		err := r.Scan(&k.tenant, &id)
		copy(k.id[:], id)
		return k, err
	})
}

func (s *Store) wakeKeptBack(ctx context.Context, keys []key) (woken int, err error) {
	tenants, ids := keyArrays(keys)
	err = s.write(ctx, func(ctx context.Context) error {
		return s.transact(ctx, func(tx *transaction) error {
			b := tx.batch()
			b.Queue(query("lock_any_tickets"), tenants, ids)
			b.Queue(query("wake_kept_back"), tenants, ids, s.now()).Exec(func(t pgconn.CommandTag) error {
				woken = int(t.RowsAffected())
				return nil
			})
			s.reached("wake_kept_back")
			return tx.commit(ctx, b)
		})
	})
	return woken, err
}
