package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oncepay/oncepay/payments"
)

// Batch implements payments.Reader. CodeNotFound.
func (s *Store) Batch(ctx context.Context, tenantID string, id payments.ID) (payments.BatchState, error) {
	if !storable(tenantID) {
		return payments.BatchState{}, noBatch(id)
	}
	list, err := s.queryBatches(ctx, "find_batches", []string{tenantID}, [][]byte{id[:]})
	if err != nil {
		return payments.BatchState{}, err
	}
	if len(list) == 0 {
		return payments.BatchState{}, noBatch(id)
	}
	states, err := s.states(ctx, list)
	if err != nil {
		return payments.BatchState{}, err
	}
	return states[0], nil
}

// Batches implements payments.Reader. CodeInvalid: the cursor is none of ours, or a filter is not text.
func (s *Store) Batches(ctx context.Context, r payments.BatchListRequest) (page []payments.BatchState, next string, err error) {
	if err := checkFilters(map[string]string{"tenant": r.TenantID, "parent": r.Parent}); err != nil {
		return nil, "", err
	}
	var at, id any
	if r.Cursor != "" {
		c, err := decodeCursor(r.Cursor)
		if err != nil {
			return nil, "", err
		}
		at, id = c.at, []byte(c.id)
	}
	limit := pageSize(r.Limit)
	statement, params := "list_batches", []any{r.TenantID, at, id, limit + 1}
	if r.Parent != "" {
		statement, params = "list_run", append(params, r.Parent)
	}
	list, err := s.queryBatches(ctx, statement, params...)
	if err != nil {
		return nil, "", err
	}
	if len(list) > limit {
		list = list[:limit]
		last := list[limit-1]
		lastID := last.ID()
		next = cursor{last.CreatedAt, string(lastID[:]), last.TenantID}.encode()
	}
	page, err = s.states(ctx, list)
	if err != nil {
		return nil, "", err
	}
	return page, next, nil
}

// OpenBatches implements payments.Batches, in the order of tenant and id.
func (s *Store) OpenBatches(ctx context.Context, after payments.BatchRef, limit int) ([]payments.BatchRef, error) {
	if limit <= 0 {
		return nil, nil
	}
	if err := checkFilters(map[string]string{"tenant": after.TenantID}); err != nil {
		return nil, err
	}
	rows, err := s.pool.Query(ctx, query("open_batches"), after.TenantID, after.ID[:], limit)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (payments.BatchRef, error) {
		var ref payments.BatchRef
		var id []byte
		err := r.Scan(&ref.TenantID, &id)
		copy(ref.ID[:], id)
		return ref, err
	})
	return list, translate(err)
}

// states adds their totals to batches, in their order.
func (s *Store) states(ctx context.Context, list []payments.Batch) ([]payments.BatchState, error) {
	if len(list) == 0 {
		return nil, nil
	}
	states, keys := make([]payments.BatchState, len(list)), make([]key, len(list))
	for i, b := range list {
		states[i].Batch, keys[i] = b, key{b.TenantID, b.ID()}
	}
	tenants, ids := keyArrays(keys)
	rows, err := s.pool.Query(ctx, query("batch_totals"), tenants, ids)
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	totals := map[key][]payments.StatusTotal{}
	if err := scanTotals(rows, totals); err != nil {
		return nil, translate(err)
	}
	for i, k := range keys {
		states[i].Totals = sortedTotals(totals[k])
	}
	return states, nil
}

// scanTotals reads rows of batch_totals.sql and complete_totals.sql.
func scanTotals(rows pgx.Rows, into map[key][]payments.StatusTotal) error {
	for rows.Next() {
		var k key
		var id []byte
		var t payments.StatusTotal
		var status string
		if err := rows.Scan(&k.tenant, &id, &status, &t.Currency, &t.Count, &t.Amount); err != nil {
			return err
		}
		copy(k.id[:], id)
		t.Status = payments.Status(status)
		into[k] = append(into[k], t)
	}
	return rows.Err()
}

func sortedTotals(totals []payments.StatusTotal) []payments.StatusTotal {
	slices.SortFunc(totals, func(a, b payments.StatusTotal) int {
		return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.Currency, b.Currency))
	})
	return totals
}

// queryBatches runs a statement that returns {batch}.
func (s *Store) queryBatches(ctx context.Context, statement string, params ...any) ([]payments.Batch, error) {
	rows, err := s.pool.Query(ctx, query(statement), params...)
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	var list []payments.Batch
	err = collectBatches(&list)(rows)
	return list, translate(err)
}

// collectBatches is the callback of a statement that returns {batch}; more is scanned from each row behind it.
func collectBatches(into *[]payments.Batch, more ...any) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			var b payments.Batch
			var id []byte
			var completed pgtype.Timestamptz
			targets := append([]any{&b.TenantID, &id, &b.IdempotencyKey, &b.Parent, &b.Count, &b.CreatedAt, &completed}, more...)
			if err := rows.Scan(targets...); err != nil {
				return err
			}
			b.CreatedAt, b.CompletedAt = b.CreatedAt.UTC(), instant(completed)
			*into = append(*into, b)
		}
		return rows.Err()
	}
}

func noBatch(id payments.ID) error {
	return payments.Errorf(payments.CodeNotFound, "there is no batch %s", id.Format(payments.KindBatch))
}

// FindMany implements payments.Reader. CodeInvalid: the two lists are not of one length.
func (s *Store) FindMany(ctx context.Context, tenants []string, ids []payments.ID) ([]payments.Payment, error) {
	if len(tenants) != len(ids) {
		return nil, payments.Errorf(payments.CodeInvalid, "%d tenants and %d ids do not belong together", len(tenants), len(ids))
	}
	keys := make([]key, 0, len(ids))
	for i, tenant := range tenants {
		if storable(tenant) { // no other has payments
			keys = append(keys, key{tenant, ids[i]})
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	slices.SortFunc(keys, key.compare)
	names, list := keyArrays(slices.Compact(keys))
	rows, err := s.read(ctx, "read_by_id", names, list)
	if err != nil {
		return nil, err
	}
	found := make([]payments.Payment, len(rows))
	for i := range rows {
		found[i] = rows[i].payment
	}
	return found, s.showPaused(ctx, found)
}
