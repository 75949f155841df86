-- Keeps the ticket of a charge from everybody while its cancel ($3) is open; the end of that makes it due (next_follow_up.sql).
UPDATE queue q SET due_at = '9999-01-01T00:00:00Z'
WHERE q.tenant_id = $1 AND q.payment_id = $2 AND q.token IS NULL
    AND EXISTS (SELECT FROM operations o WHERE o.tenant_id = $1 AND o.payment_id = $2 AND o.id = $3)
