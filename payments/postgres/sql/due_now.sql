-- Tickets that nobody has are due now.
UPDATE queue q SET due_at = least(q.due_at, $3::timestamptz) FROM unnest($1::text[], $2::bytea[]) AS u(tenant_id, payment_id)
WHERE q.tenant_id = u.tenant_id AND q.payment_id = u.payment_id AND q.token IS NULL
