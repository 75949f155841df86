package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// Violation is a payment that breaks invariant I2: somebody must act on it and there is no ticket, or one that nobody is given; or the other way round.
type Violation struct {
	TenantID string
	ID       payments.ID
	Status   payments.Status // "" when there is a ticket and no payment
	What     string          // "ticket": there is one and must not be; "no ticket"; "kept back": for a cancel that has ended
}

// TicketViolations is the query of invariant I2, made of the domain's own table of statuses. It must return nothing, at any time; it returns
// at most 1,000.
func (s *Store) TicketViolations(ctx context.Context) ([]Violation, error) {
	rows, err := s.pool.Query(ctx, query("ticket_violations"))
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (Violation, error) {
		var v Violation
		var id []byte
		var status string
		err := r.Scan(&v.TenantID, &id, &status, &v.What)
		copy(v.ID[:], id)
		v.Status = payments.Status(status)
		return v, err
	})
	return list, translate(err)
}
