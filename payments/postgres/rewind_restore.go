package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// RestorePayments stores those of the payments that the database does not have, and makes them, and those that it has and that nothing was sent
// for, in doubt: each is looked up before anything is sent. Of two with one key the first counts. Intents must have passed validation. Captures, cancels
// and refunds come after all charges of the list, in their order. CodeTicketLost as for GoOn.
func (s *Store) RestorePayments(ctx context.Context, r payments.Rewind, hold time.Duration, list []payments.ForgottenPayment, account AccountOf) (payments.Rewind, payments.Restored, error) {
	done := payments.Restored{Conflicts: map[int][]string{}, Unknown: map[int]string{}, Refused: map[int]string{}}
	var charges, others []int
	for i := range list {
		if list[i].Intent.Kind.FollowUp() {
			others = append(others, i)
		} else {
			charges = append(charges, i)
		}
	}
	if len(charges) > 0 || len(list) == 0 {
		var err error
		if r, err = s.restoreCharges(ctx, r, hold, list, charges, account, &done); err != nil {
			return r, payments.Restored{}, err
		}
	}
	for _, i := range others {
		next, err := s.restoreFollowUp(ctx, r, hold, list[i], i, account, &done)
		if err != nil {
			return next, payments.Restored{}, err
		}
		r = next
	}
	return r, done, nil
}

// restoreCharges stores those of the list that at names, all at once.
func (s *Store) restoreCharges(ctx context.Context, r payments.Rewind, hold time.Duration, list []payments.ForgottenPayment, at []int, account AccountOf, done *payments.Restored) (payments.Rewind, error) {
	admissions := make([]*admission, len(at))
	first := map[key]*admission{}
	var keys []key
	since := r.Since // a copy of what came by HTTP may have been published long after it was sent, but not before the database forgot it
	for n, i := range at {
		f := list[i]
		a, _, err := prepare(payments.AdmitRequest{Intent: f.Intent, Lane: f.Lane})
		if err != nil {
			return r, err
		}
		admissions[n] = a
		if first[a.key()] == nil {
			first[a.key()] = a
			keys = append(keys, a.key())
		}
		since = earlier(since, f.StoredAt)
	}
	slices.SortFunc(keys, key.compare)
	return s.rewinding(ctx, r, hold, func(ctx context.Context, tx *transaction, r *payments.Rewind, now time.Time) ([]payments.OutboxItem, error) {
		clear(done.Conflicts)
		clear(done.Unknown)
		b := tx.batch()
		s.queueRestore(b, keys, first, &done.Stored)
		tenants, ids := keyArrays(keys)
		var rows []row
		b.Queue(query("read_by_id"), tenants, ids).Query(collect(&rows))
		if err := tx.send(ctx, b); err != nil {
			return nil, err
		}
		there := make(map[key]*row, len(rows))
		for i := range rows {
			there[rows[i].key()] = &rows[i]
		}
		for n, a := range admissions {
			i := at[n]
			switch stored := there[a.key()]; {
			case stored == nil:
				done.Unknown[i] = a.Intent.TenantID
			case stored.fingerprintVersion != payments.FingerprintVersion || stored.fingerprint != a.fingerprint:
				if fields := differs(stored.payment.Intent, a.Intent); len(fields) > 0 {
					done.Conflicts[i] = fields
				}
			}
		}
		asked := *r
		asked.Since = since
		in, messages, err := s.doubt(ctx, tx, asked, now, slices.Clone(keys), account)
		r.Progress.Doubted += in.n
		r.Progress.Restored += done.Stored
		return messages, err
	})
}

func earlier(a, b time.Time) time.Time {
	if b.IsZero() || a.Before(b) {
		return a
	}
	return b
}

// queueRestore adds the insert, column by column.
func (s *Store) queueRestore(b *pgx.Batch, keys []key, first map[key]*admission, stored *int) {
	n := len(keys)
	tenants, ids := keyArrays(keys)
	idempotencyKeys, kinds, currencies, captures := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	customers, methods, details := make([]string, n), make([]string, n), make([]string, n)
	lanes, fingerprints, amounts, offSession, expires := make([]int16, n), make([][]byte, n), make([]int64, n), make([]bool, n), make([]*time.Time, n)
	for i, k := range keys {
		a := first[k]
		in := a.Intent
		idempotencyKeys[i], kinds[i], currencies[i], captures[i] = in.IdempotencyKey, string(in.Kind), in.Currency, string(in.CaptureMethod)
		customers[i], methods[i], details[i] = in.Customer, in.PaymentMethod, a.details
		lanes[i], fingerprints[i], amounts[i], offSession[i], expires[i] = int16(a.Lane), a.fingerprint[:], in.Amount, in.OffSession, nullable(in.ExpiresAt)
	}
	b.Queue(query("restore_payments"), tenants, ids, idempotencyKeys, kinds, lanes, fingerprints, amounts, currencies, captures, offSession, customers,
		methods, details, expires, s.opts.RequestVersion, payments.FingerprintVersion, s.now()).Query(func(rows pgx.Rows) error {
		*stored = 0
		for rows.Next() {
			*stored++
		}
		return rows.Err()
	})
}
