package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// CountByStatus counts a tenant's charges by their stored status. It reads all of them.
func (s *Store) CountByStatus(ctx context.Context, tenantID string) (map[payments.Status]int, error) {
	rows, err := s.pool.Query(ctx, query("count_by_status"), tenantID)
	if err != nil {
		return nil, translate(err)
	}
	counts := map[payments.Status]int{}
	var status string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&status, &n}, func() error {
		counts[payments.Status(status)] = n
		return nil
	})
	return counts, translate(err)
}

// TicketCount is how many payments somebody must still act on.
func (s *Store) TicketCount(ctx context.Context) (n int64, err error) {
	err = s.pool.QueryRow(ctx, query("ticket_count")).Scan(&n)
	return n, translate(err)
}

// WALPosition is how many bytes the server has written to its log since it was made; two readings tell what happened between them.
func (s *Store) WALPosition(ctx context.Context) (bytes int64, err error) {
	err = s.pool.QueryRow(ctx, query("wal_position")).Scan(&bytes)
	return bytes, translate(err)
}

// ClockSkew is how far this process's clock is ahead of the store's, as exactly as one round trip allows.
func (s *Store) ClockSkew(ctx context.Context) (time.Duration, error) {
	var theirs time.Time
	before := s.wall()
	if err := s.pool.QueryRow(ctx, query("clock"), s.now()).Scan(&theirs); err != nil {
		return 0, translate(err)
	}
	after := s.wall()
	return before.Add(after.Sub(before) / 2).Sub(theirs), nil
}
