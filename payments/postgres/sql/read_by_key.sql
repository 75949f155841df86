-- Reads whichever rows are there now. It is a statement of its own, so that it sees what was committed while the insert waited.
SELECT {payment}, {ticket}, coalesce($3::timestamptz, now())
FROM unnest($1::text[], $2::text[]) AS u(tenant_id, idempotency_key)
JOIN payments p ON p.tenant_id = u.tenant_id AND p.idempotency_key = u.idempotency_key
LEFT JOIN queue q ON q.tenant_id = p.tenant_id AND q.payment_id = p.id
