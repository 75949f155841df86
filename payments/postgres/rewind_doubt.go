package postgres

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// The sizes of a rewind's transactions.
const (
	rewindChunk   = 250
	rewindStretch = 5000 // rows of payments that are looked through
)

// AccountOf tells where a tenant's payments go to; the zero Account: it is not known.
type AccountOf = func(tenantID string) payments.Account

// doubt makes payments in doubt, in a transaction: what was sent for them since the given time, or earlier, is not known. Whoever has their tickets
// records nothing any more. What has ended is left alone, and so is what Stripe is processing, which is read again by its id. What was given up
// or waits for a person stays so, unless Stripe has a record of it; then it is looked up like the others.
func (s *Store) doubt(ctx context.Context, tx *transaction, r payments.Rewind, now time.Time, keys []key, account AccountOf,
) (done doubted, messages []payments.OutboxItem, err error) {
	if len(keys) == 0 {
		return done, nil, nil
	}
	slices.SortFunc(keys, key.compare)
	tenants, ids := keyArrays(slices.Compact(keys))
	var rows []row
	found := map[key][]payments.Account{}
	b := tx.batch()
	b.Queue(query("lock_any_tickets"), tenants, ids)
	b.Queue(query("lock_payments"), tenants, ids)
	b.Queue(query("read_by_id"), tenants, ids).Query(collect(&rows))
	b.Queue(query("object_accounts"), tenants, ids).Query(collectAccounts(found))
	if err := tx.send(ctx, b); err != nil {
		return done, nil, err
	}
	if err := nameRefunds(ctx, tx, rows); err != nil {
		return done, nil, err
	}
	slices.SortFunc(rows, func(x, y row) int { return x.key().compare(y.key()) })
	d := doubting{now: now}
	for i := range rows {
		switch there := found[rows[i].key()]; len(there) {
		case 0:
			err = d.add(s, r, rows[i], account(rows[i].payment.TenantID), false)
		case 1:
			err = d.add(s, r, rows[i], there[0], true)
		default:
			err = d.several(s, rows[i])
		}
		if err != nil {
			return done, nil, err
		}
	}
	done = doubted{len(d.keys), d.disagrees}
	if len(d.keys)+len(d.changes) == 0 {
		return done, nil, nil
	}
	b = tx.batch()
	if len(d.changes) > 0 {
		if err := s.queueChanges(b, d.changes, now, &messages); err != nil {
			return done, nil, err
		}
	}
	tenants, ids = keyArrays(d.keys)
	b.Queue(query("doubt_payments"), tenants, ids, now, d.since, d.accounts, d.livemodes)
	return done, messages, tx.send(ctx, b)
}

// doubted is how many payments are in doubt now, and how many a person must look at although they have ended.
type doubted struct{ n, disagrees int }

// doubting collects what a transaction writes.
type doubting struct {
	now       time.Time
	keys      []key
	since     []time.Time
	accounts  []string
	livemodes []bool
	changes   []*change
	disagrees int // payments that have ended, and of which Stripe has PaymentIntents on several accounts
}

// add decides about one payment. account is where Stripe's record of it is (recorded), or where its tenant's payments go.
func (d *doubting) add(s *Store, r payments.Rewind, of row, account payments.Account, recorded bool) error {
	p, moves := &of.payment, false
	switch p.Status {
	case payments.StatusReceived, payments.StatusWaiting:
		moves = true
	case payments.StatusUnknown:
		if moves = true; p.Reason == payments.ReasonRewound && p.InDoubt && !p.LastSubmitAt.Before(r.CreatedAt) {
			return nil // it has been in this rewind's hands before
		}
	case payments.StatusPending:
		if p.StripePaymentIntent != "" {
			return nil
		}
	case payments.StatusStalled, payments.StatusNeedsReview:
		moves = recorded
	default:
		return nil
	}
	if p.StripeAccount == "" {
		p.StripeAccount, p.Livemode = account.ID, account.Livemode
	}
	d.keys, d.since = append(d.keys, key{p.TenantID, p.ID}), append(d.since, micro(r.Since))
	d.accounts, d.livemodes = append(d.accounts, account.ID), append(d.livemodes, account.Livemode)
	if !moves {
		return nil
	}
	t := payments.Transition{Status: payments.StatusUnknown, Reason: payments.ReasonRewound, InDoubt: true}
	c, err := s.newChange(of, t, s.newToken(), d.now, d.now)
	if err != nil {
		return err
	}
	d.changes = append(d.changes, c)
	return nil
}

// several gives a payment to a person whose PaymentIntents are on more than one account: it is pinned to one of them at most, and what is looked up there
// says nothing of the other. One that has ended stays, and is told.
func (d *doubting) several(s *Store, of row) error {
	p := of.payment
	if p.Status == payments.StatusNeedsReview && p.InDoubt && p.Reason == payments.ReasonSeveral {
		return nil
	}
	if !p.Status.CanMove(payments.StatusNeedsReview) && p.Status != payments.StatusNeedsReview {
		s.opts.Logger.Error("Stripe has PaymentIntents of a payment that has ended on several accounts; a person must look at them", "payment", p.ID.String(),
			"tenant", p.TenantID, "status", p.Status)
		d.disagrees++
		return nil
	}
	t := payments.Transition{Status: payments.StatusNeedsReview, Reason: payments.ReasonSeveral, InDoubt: true}
	c, err := s.newChange(of, t, s.newToken(), d.now, d.now)
	if err != nil {
		return err
	}
	d.changes = append(d.changes, c)
	return nil
}

// collectAccounts collects each payment's, without repeats.
func collectAccounts(into map[key][]payments.Account) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			var k key
			var id []byte
			var a payments.Account
			if err := rows.Scan(&k.tenant, &id, &a.ID, &a.Livemode); err != nil {
				return err
			}
			copy(k.id[:], id)
			if !slices.Contains(into[k], a) {
				into[k] = append(into[k], a)
			}
		}
		return rows.Err()
	}
}

// rewinding runs one transaction of a rewind: it goes on, does what do does, and hands on what that wants sent.
func (s *Store) rewinding(ctx context.Context, r payments.Rewind, hold time.Duration,
	do func(context.Context, *transaction, *payments.Rewind, time.Time) ([]payments.OutboxItem, error),
) (payments.Rewind, error) {
	var next payments.Rewind
	var messages []payments.OutboxItem
	err := s.write(ctx, func(ctx context.Context) error {
		return s.transact(ctx, func(tx *transaction) error {
			held, now, err := s.goOn(ctx, tx, r, hold)
			if err != nil {
				return err
			}
			if messages, err = do(ctx, tx, &held, now); err != nil {
				return err
			}
			// What was done is written down with it.
			if held, _, err = s.goOn(ctx, tx, held, hold); err != nil {
				return err
			}
			next = held
			s.reached("rewind")
			return tx.commit(ctx, tx.batch())
		})
	})
	if err != nil {
		return r, err
	}
	s.committed(messages)
	return next, nil
}

// DoubtTickets makes the next payments that are to be worked on in doubt, from where the progress stands; done: there are no more. CodeTicketLost
// as for GoOn.
func (s *Store) DoubtTickets(ctx context.Context, r payments.Rewind, hold time.Duration, account AccountOf) (next payments.Rewind, done bool, err error) {
	return s.doubtNext(ctx, r, hold, account, "rewind_tickets", rewindChunk)
}

// DoubtOthers is DoubtTickets for what was given up or waits for a person.
func (s *Store) DoubtOthers(ctx context.Context, r payments.Rewind, hold time.Duration, account AccountOf) (next payments.Rewind, done bool, err error) {
	return s.doubtNext(ctx, r, hold, account, "rewind_others", rewindStretch)
}

// DoubtFound is DoubtTickets for what Stripe has a record of: payments that came since the rewind began. AwaitAdmissions comes before.
func (s *Store) DoubtFound(ctx context.Context, r payments.Rewind, hold time.Duration, account AccountOf) (next payments.Rewind, done bool, err error) {
	return s.doubtNext(ctx, r, hold, account, "rewind_found", rewindChunk, r.CreatedAt)
}

func (s *Store) doubtNext(ctx context.Context, r payments.Rewind, hold time.Duration, account AccountOf, statement string, limit int, more ...any) (next payments.Rewind, done bool, err error) {
	from, err := standsAt(r)
	if err != nil {
		return r, false, err
	}
	next, err = s.rewinding(ctx, r, hold, func(ctx context.Context, tx *transaction, r *payments.Rewind, now time.Time) ([]payments.OutboxItem, error) {
		keys, last, err := selectKeys(ctx, tx, statement, append([]any{from.tenant, from.id[:], limit}, more...))
		if err != nil {
			return nil, err
		}
		if done = last == (key{}); done {
			return nil, nil
		}
		r.Progress.Tenant, r.Progress.ID = last.tenant, last.id.String()
		done, messages, err := s.doubt(ctx, tx, *r, now, keys, account)
		r.Progress.Doubted += done.n
		r.Progress.Disagrees += done.disagrees
		return messages, err
	})
	return next, done, err
}

// selectKeys reads the next payments and how far they go; nothing left: the zero key.
func selectKeys(ctx context.Context, tx *transaction, statement string, args []any) (keys []key, last key, err error) {
	b := tx.batch()
	b.Queue(query(statement), args...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var k key
			var id []byte
			ends := false
			targets := []any{&k.tenant, &id, &ends}
			if len(rows.FieldDescriptions()) == 2 {
				targets = targets[:2]
			}
			if err := rows.Scan(targets...); err != nil {
				return err
			}
			copy(k.id[:], id)
			if !ends {
				keys = append(keys, k)
			}
			if last.compare(k) < 0 {
				last = k
			}
		}
		return rows.Err()
	})
	return keys, last, tx.send(ctx, b)
}

// AwaitAdmissions waits for everybody who was storing payments when it was called: whoever comes later sees what the rewind has found at Stripe.
// CodeUnavailable: somebody took longer than may be waited; it is to be repeated.
func (s *Store) AwaitAdmissions(ctx context.Context) error {
	err := s.transact(ctx, func(tx *transaction) error {
		b := tx.batch()
		b.Queue(query("lock_admissions"))
		return tx.commit(ctx, b)
	})
	if oneItems(err) {
		return payments.Errorf(payments.CodeUnavailable, "somebody is storing payments for long: %w", errors.Unwrap(err))
	}
	return translate(err)
}
