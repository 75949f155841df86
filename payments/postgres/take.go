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

// pausePoll is when a Take that may have passed over somebody for a pause asks to be repeated.
const pausePoll = time.Second

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
	for _, a := range append([]payments.Account{r.Account}, r.Except...) {
		if !storable(a.ID) {
			return payments.Taking{}, unstorable("stripe_account")
		}
	}
	if r.Only != nil && (r.Only.ID == "" || !storable(r.Only.ID)) {
		return payments.Taking{}, unstorable("stripe_account")
	}
	if r.Alone {
		limit = 1
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
			got, err = s.take(ctx, t)
		}
		return err
	})
	if err != nil {
		return payments.Taking{}, err
	}
	return got, nil
}

// take gives what is due, whatever the accounts' budgets.
func (s *Store) take(ctx context.Context, t taking) (got payments.Taking, err error) {
	statement, params := "take", []any{int16(t.Lane), t.limit, t.Lease.Microseconds(), t.tokens, s.now()}
	if t.Alone {
		statement = "take_alone"
	} else {
		params = append(params, s.turns.last(t.Lane))
	}
	params = append(append(params, t.Account.ID, t.Account.Livemode), holdParams(t.TakeRequest)...)
	b := &pgx.Batch{}
	leaseFrom := s.wall() // before the statement: our lease must not outlast the ticket's
	b.Queue(query(statement), params...).Query(func(rows pgx.Rows) error {
		got.Claims, err = s.scanClaims(rows, t, leaseFrom)
		return err
	})
	s.queueRest(b, t, &got)
	if err := s.pool.SendBatch(ctx, b).Close(); err != nil {
		return payments.Taking{}, err
	}
	if !t.Alone {
		s.turns.servedLast(t.Lane, got.Claims)
	}
	return got, nil
}

// queueRest asks what the Take has left that it was not to give. With somebody paused it cannot be told whether something due was left.
func (s *Store) queueRest(b *pgx.Batch, t taking, got *payments.Taking) {
	params := append([]any{int16(t.Lane), s.now(), t.Account.ID, t.Account.Livemode}, holdParams(t.TakeRequest)...)
	b.Queue(query("take_rest"), params...).QueryRow(func(row pgx.Row) error {
		var paused bool
		err := row.Scan(&got.Alone, &paused)
		if paused || len(t.Except) > 0 || t.Only != nil {
			got.Wait = pausePoll
		}
		return err
	})
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
