package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

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

// acceptNew is accept.sql for keys of which none is known yet, as nearly all are: it looks for no row that is there before it inserts each, which takes a
// seventh off PostgreSQL's part. One that is there, or comes at the same moment, refuses the whole flush, of which nothing is stored then, and accept.sql
// comes instead: for meetFor, since who repeats one request often repeats many.
const (
	acceptNew      = "accept_new"
	acceptConflict = "    ON CONFLICT DO NOTHING -- by any unique index, as in admit.sql\n"
	meetFor        = 10 * time.Second
)

// acceptStatement names the statement for a flush that accepts.
func (s *Store) acceptStatement(f *admitting) string {
	if f.allNew = !f.refused && s.wall().UnixNano() >= s.meetsUntil.Load(); f.allNew {
		return acceptNew
	}
	return "accept"
}

// met reports whether a flush was refused for a row that was there already, and has the next ones expect some.
func (s *Store) met(f *admitting, err error) bool {
	var pg *pgconn.PgError
	if !f.allNew || !errors.As(err, &pg) || pg.Code != uniqueViolation {
		return false
	}
	f.refused = true
	s.meetsUntil.Store(s.wall().Add(meetFor).UnixNano())
	return true
}

const uniqueViolation = "23505"

// accepted takes up the one row that accept.sql answers with.
func (f *admitting) accepted(rows pgx.Rows, requestVersion int) error {
	for rows.Next() {
		var now time.Time
		var tenants []string
		var ids [][]byte
		var numbers []int64
		if err := rows.Scan(&f.restored, &now, &tenants, &ids, &numbers); err != nil {
			return err
		}
		if len(ids) != len(tenants) || len(numbers) != len(tenants) {
			return fmt.Errorf("%w: %d tenants, %d of their ids, %d numbers", errMapping, len(tenants), len(ids), len(numbers))
		}
		f.messages = make([]payments.OutboxItem, 0, len(f.first))
		for i, row := range numbers {
			if err := f.acceptedOf(tenants[i], ids[i], row, now, requestVersion); err != nil {
				return err
			}
		}
	}
	slices.SortFunc(f.messages, func(a, b payments.OutboxItem) int { return cmp.Compare(a.ID, b.ID) })
	return rows.Err()
}

// acceptedOf takes up what one tenant got in, which one row of the outbox announces.
func (f *admitting) acceptedOf(tenant string, ids []byte, row int64, now time.Time, requestVersion int) error {
	k := key{tenant: tenant}
	parts := len(ids) / len(k.id)
	if parts*len(k.id) != len(ids) || parts == 0 || parts > partsMax {
		return fmt.Errorf("%w: %d bytes of ids", errMapping, len(ids))
	}
	for part := range parts {
		copy(k.id[:], ids[part*len(k.id):])
		if err := f.takeUp(k, now, requestVersion, false, false); err != nil {
			return err
		}
		a := f.first[k]
		f.messages = append(f.messages, announcedItem(parcel{row, parts, part}, tenant, a.Lane, a.announced))
	}
	return nil
}
