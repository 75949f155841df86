package postgres

import (
	"context"
	"slices"

	"github.com/oncepay/oncepay/payments"
)

// OpenPayments reads the next payments that wait for their customer or for a capture and whose PaymentIntent is known, at most so many and in order,
// from where the progress stands. through is the job as it stands when all of them are done; it is not written. done: there are no more.
// CodeUnavailable.
func (s *Store) OpenPayments(ctx context.Context, r payments.Rewind, limit int) (list []payments.Payment, through payments.Rewind, done bool, err error) {
	from, err := standsAt(r)
	if err != nil {
		return nil, r, false, err
	}
	var rows []row
	err = s.transact(ctx, func(tx *transaction) error {
		rows = nil
		keys, last, err := selectKeys(ctx, tx, "rewind_open", []any{from.tenant, from.id[:], rewindStretch})
		if err != nil {
			return err
		}
		done = last == (key{})
		slices.SortFunc(keys, key.compare)
		if len(keys) > limit {
			keys = keys[:limit]
			last = keys[limit-1]
		}
		through = r
		through.Progress.Tenant, through.Progress.ID = last.tenant, last.id.String()
		b := tx.batch()
		tenants, ids := keyArrays(keys)
		b.Queue(query("read_by_id"), tenants, ids).Query(collect(&rows))
		return tx.commit(ctx, b)
	})
	if err != nil || done {
		return nil, r, done, translate(err)
	}
	slices.SortFunc(rows, func(x, y row) int { return x.key().compare(y.key()) })
	for i := range rows {
		list = append(list, rows[i].payment)
	}
	return list, through, false, nil
}

// standsAt is the last payment that a step over rows has done.
func standsAt(r payments.Rewind) (key, error) {
	k := key{tenant: r.Progress.Tenant}
	if r.Progress.ID == "" {
		return k, nil
	}
	var err error
	if k.id, err = payments.ParseID(r.Progress.ID); err != nil {
		return k, payments.Errorf(payments.CodeInternal, "the rewind %d does not say where it stands", r.ID)
	}
	return k, nil
}
