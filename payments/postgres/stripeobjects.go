package postgres

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// StoreObjects keeps what Stripe's listing shows of our payments, so that a payment which comes later begins in doubt. It returns the payments that
// nobody works on and of which Stripe knows more than they say, and names tenants that the database does not have. CodeTicketLost as for GoOn.
func (s *Store) StoreObjects(ctx context.Context, r payments.Rewind, hold time.Duration, objects []payments.StripeObject) (next payments.Rewind, contradicted []payments.Payment, err error) {
	sorted := slices.Clone(objects)
	slices.SortFunc(sorted, func(a, b payments.StripeObject) int {
		if c := (key{a.TenantID, a.PaymentID}).compare(key{b.TenantID, b.PaymentID}); c != 0 {
			return c
		}
		return strings.Compare(a.Intent.ID, b.Intent.ID)
	})
	sorted = slices.CompactFunc(sorted, func(a, b payments.StripeObject) bool {
		return a.TenantID == b.TenantID && a.PaymentID == b.PaymentID && a.Intent.ID == b.Intent.ID
	})
	n := len(sorted)
	keys, names := make([]key, n), make([]string, n)
	intents, accounts, livemodes, created := make([]string, n), make([]string, n), make([]bool, n), make([]time.Time, n)
	for i, o := range sorted {
		keys[i], names[i] = key{o.TenantID, o.PaymentID}, o.TenantID
		intents[i], accounts[i], livemodes[i], created[i] = o.Intent.ID, o.Account.ID, o.Account.Livemode, micro(o.Intent.Created)
	}
	tenants, ids := keyArrays(keys)
	next, err = s.rewinding(ctx, r, hold, func(ctx context.Context, tx *transaction, r *payments.Rewind, now time.Time) ([]payments.OutboxItem, error) {
		contradicted = nil
		known := map[string]bool{}
		var rows []row
		b := tx.batch()
		b.Queue(query("store_objects"), tenants, ids, intents, accounts, livemodes, created, now)
		unique := slices.Compact(slices.Clone(keys))
		uniqueTenants, uniqueIDs := keyArrays(unique)
		b.Queue(query("read_by_id"), uniqueTenants, uniqueIDs).Query(collect(&rows))
		b.Queue(query("known_tenants"), slices.Compact(names)).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var name string
				if err := rows.Scan(&name); err != nil {
					return err
				}
				known[name] = true
			}
			return rows.Err()
		})
		if err := tx.send(ctx, b); err != nil {
			return nil, err
		}
		for i := range rows {
			p := rows[i].payment
			if slices.ContainsFunc(sorted, func(o payments.StripeObject) bool {
				return o.PaymentID == p.ID && o.TenantID == p.TenantID && o.Contradicts(p)
			}) {
				contradicted = append(contradicted, p)
			}
		}
		for _, o := range sorted {
			if !known[o.TenantID] {
				r.Progress.Misses(o.TenantID)
			}
		}
		r.Progress.Objects += n
		return nil, nil
	})
	return next, contradicted, err
}
