-- Makes tickets that are locked due, unless a cancel of their charge is open: one may have been accepted since they were found.
UPDATE queue q SET due_at = coalesce($3::timestamptz, now()) FROM unnest($1::text[], $2::bytea[]) AS u(tenant_id, payment_id)
WHERE q.tenant_id = u.tenant_id AND q.payment_id = u.payment_id AND q.token IS NULL AND q.due_at >= '9999-01-01T00:00:00Z' AND NOT EXISTS (
    SELECT FROM (SELECT * FROM operations o WHERE o.tenant_id = q.tenant_id AND o.payment_id = q.payment_id AND o.kind = 'cancel' OFFSET 0) o
    CROSS JOIN LATERAL (SELECT x.status FROM payments x WHERE x.tenant_id = o.tenant_id AND x.id = o.id OFFSET 0) x
    WHERE x.status NOT IN ('failed', 'rejected', 'expired', 'canceled'))
