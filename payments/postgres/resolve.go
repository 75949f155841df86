package postgres

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// Resolve records a person's decision about a payment, with its line in the audit, in one transaction. The open dead letter of a payment that is final
// then is settled with it. CodeNotFound; CodeInvalid as payments.Resolve.
func (s *Store) Resolve(ctx context.Context, tenantID string, id payments.ID, as payments.Status, op payments.Operation) (payments.Recorded, error) {
	var before payments.Status
	decide := func(p payments.Payment) (payments.Transition, error) {
		before = p.Status
		return payments.Resolve(p, as, op, s.wall())
	}
	return s.evidence(ctx, tenantID, id, decide, func(b *pgx.Batch, done payments.Recorded) {
		if done.Payment.Status.Final() {
			b.Queue(query("settle_ticket_letter"), tenantID, id[:])
		}
		result, _ := json.Marshal(map[string]any{"from": before, "status": done.Payment.Status})
		s.queueAudit(b, payments.AuditEntry{
			Actor: op.Actor, Action: "payments resolve", Reason: op.Reason, TenantID: tenantID, Target: done.Payment.ID.Format(done.Payment.Kind), Result: result,
		})
	})
}
