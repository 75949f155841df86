package postgres

import (
	"context"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// throttleEvery is how often an account's rate is halved at most. A process asks PostgreSQL no more often than that; throttle.sql sees to it for
// all of them together.
const throttleEvery = time.Second

// throttleLimit is how long it may take: the caller's lease runs meanwhile, and the outcome that it has is not recorded.
const throttleLimit = 2 * throttleEvery

// Throttle implements payments.Store: it halves what is left of the account's rate, which grows back to the setting within 30 s.
func (s *Store) Throttle(ctx context.Context, a payments.Account) error {
	if s.opts.Rate == 0 || a.ID == "" {
		return nil
	}
	if !storable(a.ID) {
		return unstorable("stripe_account")
	}
	now := s.wall()
	if !s.budgets.throttle(a, now) {
		return nil
	}
	// Tried once: the caller has an outcome to record, and the next 429 says it again.
	ctx, cancel := context.WithTimeout(ctx, throttleLimit)
	defer cancel()
	err := s.makeBudgets(ctx, []payments.Account{a})
	if err == nil {
		_, err = s.pool.Exec(ctx, query("throttle"), a.ID, a.Livemode, s.now(), s.opts.Rate)
	}
	if err != nil {
		s.budgets.unthrottle(a, now)
	}
	return translate(err)
}

// throttle reports whether it is time to say so again. A clock that went back is not waited for.
func (b *budgets) throttle(a payments.Account, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if last, said := b.throttled[a]; said && now.Sub(last).Abs() < throttleEvery {
		return false
	}
	if b.throttled == nil {
		b.throttled = map[payments.Account]time.Time{}
	}
	b.throttled[a] = now
	return true
}

// unthrottle forgets what could not be said.
func (b *budgets) unthrottle(a payments.Account, said time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.throttled[a].Equal(said) {
		delete(b.throttled, a)
	}
}
