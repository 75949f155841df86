package postgres

import (
	"errors"
	"fmt"
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

// announcedItem is the message of one row of outbox_intents.
func announcedItem(outbox int64, p *payments.Payment, body []byte) payments.OutboxItem {
	return payments.OutboxItem{ID: outbox, Kind: payments.OutboxIntent, TenantID: p.TenantID, Lane: p.Lane, Body: body}
}

// queueAnnounce adds the outbox rows of what this flush has inserted and is to announce. Where nobody asked for that it adds nothing.
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
			a, r := f.first[k], f.rows[k]
			if a == nil || r == nil {
				return fmt.Errorf("%w: an announcement of a row that was not inserted", errMapping)
			}
			f.messages = append(f.messages, announcedItem(outbox, &r.payment, a.announced))
		}
		return rows.Err()
	})
}
