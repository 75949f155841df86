package postgres

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// acceptColumns is how many of the columns of admit.sql accept.sql has: all that are not about a claim.
const acceptColumns = 14

// accepts reports whether accept.sql stores the flush: all of it is to be published, and nobody claims. It costs a fifth less than what knows of
// tokens, pauses and rewinds.
func (s *Store) accepts(f *admitting) bool {
	if len(f.paying) > 0 || s.restored.Load() {
		return false
	}
	for _, a := range f.first {
		if a.Claim || a.announced == nil {
			return false
		}
	}
	return true
}

// accepted takes up the one row that accept.sql answers with.
func (f *admitting) accepted(rows pgx.Rows, requestVersion int) error {
	for rows.Next() {
		var now time.Time
		var tenants []string
		var ids []byte
		var numbers []int64
		if err := rows.Scan(&f.restored, &now, &tenants, &ids, &numbers); err != nil {
			return err
		}
		var k key
		if len(ids) != len(tenants)*len(k.id) || len(numbers) != len(tenants) {
			return fmt.Errorf("%w: %d tenants, %d bytes of ids, %d numbers", errMapping, len(tenants), len(ids), len(numbers))
		}
		f.messages = make([]payments.OutboxItem, 0, len(numbers))
		for i, number := range numbers {
			k.tenant = tenants[i]
			copy(k.id[:], ids[i*len(k.id):])
			if err := f.takeUp(k, now, requestVersion, false, false); err != nil {
				return err
			}
			a := f.first[k]
			f.messages = append(f.messages, announcedItem(number, k.tenant, a.Lane, a.announced))
		}
	}
	slices.SortFunc(f.messages, func(a, b payments.OutboxItem) int { return cmp.Compare(a.ID, b.ID) })
	return rows.Err()
}
