package postgres

import (
	"context"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// takeMax bounds one Take.
const takeMax = 1000

// Take implements payments.Store: it gives the caller due tickets of a lane under fresh tokens, tenants in turn. A ticket whose last owner
// recorded nothing has Abandoned one higher. Tickets of a Take whose commit got lost come back when their lease is over.
func (s *Store) Take(ctx context.Context, r payments.TakeRequest) (payments.Taking, error) {
	limit := min(r.Limit, takeMax)
	if limit <= 0 {
		return payments.Taking{}, nil
	}
	if r.Lease <= 0 {
		return payments.Taking{}, payments.Errorf(payments.CodeInvalid, "a take needs a lease")
	}
	tokens := make([][]byte, limit)
	for i := range tokens {
		t := s.newToken()
		tokens[i] = t[:]
	}
	after, _ := s.turn.Load(r.Lane)
	last, _ := after.(string)
	var claims []payments.Claim
	err := s.write(ctx, func(ctx context.Context) (err error) {
		claims, err = s.take(ctx, r, limit, tokens, last)
		return err
	})
	if err != nil {
		return payments.Taking{}, err
	}
	if len(claims) > 0 {
		s.turn.Store(r.Lane, claims[len(claims)-1].Payment.TenantID)
	}
	return payments.Taking{Claims: claims}, nil
}

func (s *Store) take(ctx context.Context, r payments.TakeRequest, limit int, tokens [][]byte, after string) ([]payments.Claim, error) {
	leaseFrom := s.wall() // before the statement: our lease must not outlast the ticket's
	rows, err := s.pool.Query(ctx, query("take"), int16(r.Lane), limit, r.Lease.Microseconds(), tokens, s.now(), after, r.Account.ID, r.Account.Livemode)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var claims []payments.Claim
	for rows.Next() {
		var now time.Time
		var place int64
		got, err := scanRow(rows, &now, &place)
		if err != nil {
			return nil, err
		}
		p := got.payment
		p.Owned, p.NextAttemptAt = false, time.Time{}
		if p.StripeAccount == "" && !p.InDoubt && p.Status != payments.StatusUnknown && p.Status != payments.StatusPending {
			p.StripeAccount, p.Livemode = r.Account.ID, r.Account.Livemode // pinned by this very statement
		}
		claims = append(claims, payments.Claim{
			Payment: p, Token: got.ticket.Token, Lane: r.Lane, LeaseUntil: s.leaseEnd(leaseFrom, r.Lease, now), Abandoned: got.ticket.Abandoned, ClaimedAt: now.UTC(),
		})
	}
	return claims, rows.Err()
}

// Throttle implements payments.Store: no budget is kept without a rate.
func (s *Store) Throttle(context.Context, payments.Account) error { return nil }
