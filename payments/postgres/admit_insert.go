package postgres

import (
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// queueInserts adds the insert of all new requests, column by column.
func (s *Store) queueInserts(b *pgx.Batch, f *admitting) {
	keys := make([]key, 0, len(f.first))
	for k := range f.first {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, key.compare)
	n := len(keys)
	tenants, ids := keyArrays(keys)
	idempotencyKeys, kinds, currencies, captures := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	customers, methods, detailTexts, accounts := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	lanes, fingerprints, tokens := make([]int16, n), make([][]byte, n), make([][]byte, n)
	amounts, leases, offSession, livemodes := make([]int64, n), make([]int64, n), make([]bool, n), make([]bool, n)
	expires := make([]*time.Time, n)
	for i, k := range keys {
		a := f.first[k]
		in := a.Intent
		idempotencyKeys[i], kinds[i], currencies[i], captures[i] = in.IdempotencyKey, string(in.Kind), in.Currency, string(in.CaptureMethod)
		customers[i], methods[i], detailTexts[i] = in.Customer, in.PaymentMethod, a.details
		lanes[i], fingerprints[i], amounts[i], offSession[i] = int16(a.Lane), a.fingerprint[:], in.Amount, in.OffSession
		expires[i] = nullable(in.ExpiresAt)
		if f.asks(a) {
			tokens[i], leases[i], accounts[i], livemodes[i] = a.Token[:], a.Lease.Microseconds(), a.Account.ID, a.Account.Livemode
		}
	}
	columns := []any{
		tenants, ids, idempotencyKeys, kinds, lanes, fingerprints, amounts, currencies, captures, offSession, customers,
		methods, detailTexts, expires, accounts, livemodes, tokens, leases, s.opts.RequestVersion, payments.FingerprintVersion, s.now(),
	}
	if len(f.paying) > 0 {
		s.queuePaced(b, f, keys, columns)
		return
	}
	if s.accepts(f) {
		columns = append(columns[:acceptColumns:acceptColumns], s.opts.RequestVersion, payments.FingerprintVersion, s.now(), s.holdParam())
		b.Queue(query(s.acceptStatement(f)), columns...).Query(func(rows pgx.Rows) error {
			return f.accepted(rows, s.opts.RequestVersion)
		})
		return
	}
	if announce := f.announces(keys); announce != nil {
		b.Queue(query("admit_announced"), append(columns, announce, s.holdParam())...).Query(func(rows pgx.Rows) error {
			return f.insertedAndAnnounced(rows, s.opts.RequestVersion)
		})
		return
	}
	b.Queue(query("admit"), columns...).Query(func(rows pgx.Rows) error {
		return f.inserted(rows, s.opts.RequestVersion)
	})
}

// inserted takes up the rows of this flush. Each says whether it was given its token, whether it begins as one that Stripe knows, and whether it got no
// token for want of budget.
func (f *admitting) inserted(rows pgx.Rows, requestVersion int) error {
	for rows.Next() {
		var k key
		var id []byte
		var now time.Time
		var given, rewound, short bool
		if err := rows.Scan(&k.tenant, &id, &now, &given, &rewound, &short); err != nil {
			return err
		}
		copy(k.id[:], id)
		f.short[k] = short
		if err := f.takeUp(k, now, requestVersion, given, rewound); err != nil {
			return err
		}
	}
	return rows.Err()
}

// takeUp notes that the row of a key is this flush's. What stands in one that Stripe knows is read.
func (f *admitting) takeUp(k key, now time.Time, requestVersion int, given, rewound bool) error {
	a := f.first[k]
	if a == nil {
		return fmt.Errorf("%w: a row that nobody asked for", errMapping)
	}
	f.now[k], f.fresh[k] = now.UTC(), true
	if !rewound {
		r := a.fresh(now.UTC(), requestVersion, f.asks(a) && given)
		f.rows[k] = &r
	}
	return nil
}
