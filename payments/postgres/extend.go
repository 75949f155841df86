package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// Extend implements payments.Store: it moves the end of a lease to now + lease, writes the claim's Abandoned, and with submitting commits the
// time of the send that is about to leave. CodeTicketLost.
func (s *Store) Extend(ctx context.Context, c payments.Claim, lease time.Duration, submitting bool) (payments.Claim, error) {
	statement := "extend"
	if submitting {
		statement = "extend_submitting"
	}
	var now time.Time
	var from time.Time
	err := s.write(ctx, func(ctx context.Context) error {
		from = s.wall()
		err := s.pool.QueryRow(ctx, query(statement), c.Payment.TenantID, c.Payment.ID[:], tokenParam(c.Token), lease.Microseconds(), s.now(),
			payments.SabotageNoTokenCheck, c.Abandoned).Scan(&now)
		if errors.Is(err, pgx.ErrNoRows) {
			return ticketLost(c.Payment.ID)
		}
		return err
	})
	if err != nil {
		return payments.Claim{}, err
	}
	c.LeaseUntil = s.leaseEnd(from, lease, now)
	if submitting {
		c.Payment.LastSubmitAt = now.UTC()
	}
	return c, nil
}
