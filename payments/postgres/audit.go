package postgres

import (
	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

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
