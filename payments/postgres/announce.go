package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
)

// announcement is what is published of an intent: what it asks for, in the form in which anybody may send one. It has the fingerprint of the row, so
// that whoever gets it finds the same request there.
func announcement(i payments.Intent) ([]byte, error) {
	body, err := schema.EncodeIntent(document.Intent(i))
	var refused *schema.DecodeError
	if errors.As(err, &refused) {
		return nil, &payments.Error{Code: payments.CodeInvalid, Field: refused.Field, Message: "cannot be published: " + refused.Problem}
	}
	return body, err
}

// announcedItem is the message about one payment that a row of outbox_intents names.
func announcedItem(p parcel, tenant string, lane payments.Lane, body []byte) payments.OutboxItem {
	return payments.OutboxItem{ID: p.number(), Row: p.row, Kind: payments.OutboxIntent, TenantID: tenant, Lane: lane, Body: body}
}

// announces says for each key whether its request is to be announced; nil: none is.
func (f *admitting) announces(keys []key) []bool {
	some, list := false, make([]bool, len(keys))
	for i, k := range keys {
		list[i] = f.first[k].announced != nil
		some = some || list[i]
	}
	if !some {
		return nil
	}
	return list
}

// holdParam is for how long new outbox rows are kept from Pending, in microseconds; null: not at all.
func (s *Store) holdParam() *int64 {
	if s.hold() <= 0 {
		return nil
	}
	us := s.hold().Microseconds()
	return &us
}

// insertedAndAnnounced takes up the rows of a flush, and the numbers of those that were left in the outbox.
func (f *admitting) insertedAndAnnounced(rows pgx.Rows, requestVersion int) error {
	outbox := map[key]int64{}
	for rows.Next() {
		var k key
		var id []byte
		var now time.Time
		var given, rewound bool
		var number int64
		if err := rows.Scan(&k.tenant, &id, &now, &given, &rewound, &number); err != nil {
			return err
		}
		copy(k.id[:], id)
		if number > 0 {
			outbox[k] = number
		} else if err := f.takeUp(k, now, requestVersion, given, rewound); err != nil {
			return err
		}
	}
	for k, number := range outbox {
		a := f.first[k]
		if a == nil || !f.fresh[k] {
			return fmt.Errorf("%w: an announcement of a row that was not inserted", errMapping)
		}
		f.messages = append(f.messages, announcedItem(alone(number), k.tenant, a.Lane, a.announced))
	}
	slices.SortFunc(f.messages, func(a, b payments.OutboxItem) int { return cmp.Compare(a.ID, b.ID) })
	return rows.Err()
}

// queueAnnounce adds the outbox rows of what this flush has inserted and is to announce, where budgets were debited by the statement that inserted it.
func (s *Store) queueAnnounce(b *pgx.Batch, f *admitting) {
	var lanes []int16
	var keys []key
	var hold *time.Time
	f.messages = nil
	for _, a := range f.sorted() {
		k := a.key()
		if first := f.first[k]; f.fresh[k] && first.announced != nil {
			keys, lanes = append(keys, k), append(lanes, int16(first.Lane))
			if d := s.hold(); d > 0 {
				hold = nullable(f.now[k].Add(d))
			}
		}
	}
	if len(keys) == 0 {
		return
	}
	tenants, ids := keyArrays(keys)
	b.Queue(query("announce"), lanes, tenants, ids, hold).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var outbox int64
			var k key
			var id []byte
			if err := rows.Scan(&outbox, &k.tenant, &id); err != nil {
				return err
			}
			copy(k.id[:], id)
			a := f.first[k]
			if a == nil || !f.fresh[k] {
				return fmt.Errorf("%w: an announcement of a row that was not inserted", errMapping)
			}
			f.messages = append(f.messages, announcedItem(alone(outbox), k.tenant, a.Lane, a.announced))
		}
		return rows.Err()
	})
}
