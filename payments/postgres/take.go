package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// takeMax bounds one Take.
const takeMax = 1000

// taking is one Take.
type taking struct {
	payments.TakeRequest
	limit  int
	tokens [][]byte
}

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
	if !storable(r.Account.ID) {
		return payments.Taking{}, unstorable("stripe_account")
	}
	t := taking{TakeRequest: r, limit: limit, tokens: make([][]byte, limit)}
	for i := range t.tokens {
		token := s.newToken()
		t.tokens[i] = token[:]
	}
	var got payments.Taking
	err := s.write(ctx, func(ctx context.Context) (err error) {
		if s.opts.Rate > 0 {
			got, err = s.takePaced(ctx, t)
		} else {
			got.Claims, err = s.take(ctx, t)
		}
		return err
	})
	if err != nil {
		return payments.Taking{}, err
	}
	return got, nil
}

// take gives what is due, whatever the accounts.
func (s *Store) take(ctx context.Context, t taking) ([]payments.Claim, error) {
	leaseFrom := s.wall() // before the statement: our lease must not outlast the ticket's
	rows, err := s.pool.Query(ctx, query("take"), int16(t.Lane), t.limit, t.Lease.Microseconds(), t.tokens, s.now(), s.turns.last(t.Lane), t.Account.ID,
		t.Account.Livemode)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	claims, err := s.scanClaims(rows, t, leaseFrom)
	if err == nil {
		s.turns.servedLast(t.Lane, claims)
	}
	return claims, err
}

// scanClaims reads what {give} has given.
func (s *Store) scanClaims(rows pgx.Rows, t taking, leaseFrom time.Time) ([]payments.Claim, error) {
	var claims []payments.Claim
	for rows.Next() {
		var now time.Time
		var place int64
		var account payments.Account
		got, err := scanRow(rows, &now, &place, &account.ID, &account.Livemode)
		if err != nil {
			return nil, err
		}
		p := got.payment
		p.Owned, p.NextAttemptAt = false, time.Time{}
		if p.StripeAccount == "" && !p.InDoubt && p.Status != payments.StatusUnknown && p.Status != payments.StatusPending {
			p.StripeAccount, p.Livemode = account.ID, account.Livemode // pinned by this very statement
		}
		claims = append(claims, payments.Claim{
			Payment: p, Token: got.ticket.Token, Lane: t.Lane, LeaseUntil: s.leaseEnd(leaseFrom, t.Lease, now), Abandoned: got.ticket.Abandoned, ClaimedAt: now.UTC(),
		})
	}
	return claims, rows.Err()
}
