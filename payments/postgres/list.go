package postgres

import (
	"context"
	"slices"

	"github.com/oncepay/oncepay/payments"
)

// List returns a page of payments and the cursor of the next page, "" after the last. A status that few payments have is searched for through
// all the tenant's payments, since no index holds the status. CodeInvalid: the cursor is none of ours, or a filter is not text;
// CodeNotFound: the tenant has no such batch.
func (s *Store) List(ctx context.Context, r payments.ListRequest) (page []payments.Payment, next string, err error) {
	err = checkFilters(map[string]string{"tenant": r.TenantID, "status": string(r.Status), "customer": r.Customer, "idempotency_key": r.IdempotencyKey})
	if err != nil {
		return nil, "", err
	}
	var at, id, tenant any
	if r.Cursor != "" {
		c, err := decodeCursor(r.Cursor)
		if err != nil {
			return nil, "", err
		}
		at, id, tenant = c.at, []byte(c.id), c.tenant
	}
	if r.TenantID != "" && r.IdempotencyKey != "" && r.Cursor == "" && r.Batch == (payments.ID{}) {
		page, err = s.listOne(ctx, r)
		return page, "", err
	}
	if r.Batch != (payments.ID{}) {
		return s.listBatch(ctx, r)
	}
	limit := pageSize(r.Limit)
	rows, err := s.read(ctx, "list", null(r.TenantID), null(string(r.Status)), null(r.Customer), null(r.IdempotencyKey), at, id, tenant, limit+1, kindsOf(r))
	if err != nil {
		return nil, "", err
	}
	for i, found := range rows {
		if i == limit {
			last := page[limit-1]
			return page, cursor{last.CreatedAt, string(last.ID[:]), last.TenantID}.encode(), s.showPaused(ctx, page)
		}
		page = append(page, found.payment)
	}
	return page, "", s.showPaused(ctx, page)
}

// kindsOf are the kinds that a list shows.
func kindsOf(r payments.ListRequest) (names []string) {
	for _, k := range []payments.Kind{payments.KindCharge, payments.KindCapture, payments.KindCancel, payments.KindRefund} {
		if r.Lists(k) {
			names = append(names, string(k))
		}
	}
	return names
}

// listOne is the list of the one payment or operation that a tenant's key can name; an index leads to it.
func (s *Store) listOne(ctx context.Context, r payments.ListRequest) ([]payments.Payment, error) {
	p, err := s.FindByKey(ctx, r.TenantID, r.IdempotencyKey)
	switch {
	case payments.ErrorCode(err) == payments.CodeNotFound:
		return nil, nil
	case err != nil:
		return nil, err
	case !r.Lists(p.Kind):
		return nil, nil
	case r.Status != "" && p.ShownStatus() != r.Status, r.Customer != "" && p.Customer != r.Customer:
		return nil, nil
	}
	return []payments.Payment{p}, nil
}

// listBatch is the list of the payments of one batch, at most 100: each is found by its id. CodeNotFound: the tenant has no such batch.
func (s *Store) listBatch(ctx context.Context, r payments.ListRequest) (page []payments.Payment, next string, err error) {
	if _, err := s.Batch(ctx, r.TenantID, r.Batch); err != nil {
		return nil, "", err
	}
	rows, err := s.read(ctx, "batch_children", r.TenantID, r.Batch[:])
	if err != nil {
		return nil, "", err
	}
	if r.Cursor != "" {
		c, _ := decodeCursor(r.Cursor) // List has read it already
		rows = rows[1+slices.IndexFunc(rows, func(one row) bool { return string(one.payment.ID[:]) == c.id }):]
	}
	limit := pageSize(r.Limit)
	for _, found := range rows {
		p := found.payment
		switch {
		case !r.Lists(p.Kind), r.Status != "" && p.ShownStatus() != r.Status, r.Customer != "" && p.Customer != r.Customer, r.IdempotencyKey != "" && p.IdempotencyKey != r.IdempotencyKey:
		case len(page) == limit:
			last := page[limit-1]
			return page, cursor{last.CreatedAt, string(last.ID[:]), last.TenantID}.encode(), s.showPaused(ctx, page)
		default:
			page = append(page, p)
		}
	}
	return page, "", s.showPaused(ctx, page)
}
