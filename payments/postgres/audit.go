package postgres

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// Audit returns a page of what operators did, newest first, and the cursor of the next page, "" after the last. CodeInvalid.
func (s *Store) Audit(ctx context.Context, f payments.AuditFilter, limit int, after string) (page []payments.AuditEntry, next string, err error) {
	err = checkFilters(map[string]string{"tenant": f.TenantID, "actor": f.Actor, "action": f.Action, "target": f.Target})
	if err != nil {
		return nil, "", err
	}
	var before any
	if after != "" {
		c, err := decodeCursor(after)
		if err != nil {
			return nil, "", errCursor
		}
		if before, err = strconv.ParseInt(c.id, 10, 64); err != nil {
			return nil, "", errCursor
		}
	}
	limit = pageSize(limit)
	rows, err := s.pool.Query(ctx, query("list_audit"), planned([]any{null(f.TenantID), null(f.Actor), null(f.Action), null(f.Target), nullable(f.Since), nullable(f.Until)},
		before, limit+1)...)
	if err != nil {
		return nil, "", translate(err)
	}
	page, err = pgx.CollectRows(rows, scanAudit)
	if len(page) > limit {
		page = page[:limit]
		next = cursor{id: strconv.FormatInt(page[limit-1].ID, 10)}.encode()
	}
	return page, next, translate(err)
}

func scanAudit(r pgx.CollectableRow) (payments.AuditEntry, error) {
	var e payments.AuditEntry
	var filter, result *string
	err := r.Scan(&e.ID, &e.At, &e.Actor, &e.Action, &e.Reason, &e.TenantID, &e.Target, &filter, &result)
	e.At = e.At.UTC()
	if filter != nil {
		e.Filter = []byte(*filter)
	}
	if result != nil {
		e.Result = []byte(*result)
	}
	return e, err
}

// queueAudit adds what an operator does to the transaction that does it; its time is the store's.
func (s *Store) queueAudit(b *pgx.Batch, e payments.AuditEntry) {
	b.Queue(query("write_audit"), s.now(), null(e.TenantID), sanitised(e.Actor, nameMax), e.Action, null(sanitised(e.Reason, messageMax)),
		null(sanitised(e.Target, nameMax)), jsonParam(e.Filter), jsonParam(e.Result))
}

// jsonParam is a JSON document or null.
func jsonParam(document []byte) any {
	if len(document) == 0 {
		return nil
	}
	return string(document)
}
