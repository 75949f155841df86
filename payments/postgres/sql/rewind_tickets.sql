-- The next tickets, locked, in the order in which everybody locks.
SELECT q.tenant_id, q.payment_id FROM queue q WHERE (q.tenant_id, q.payment_id) > ($1::text, $2::bytea)
ORDER BY q.tenant_id, q.payment_id LIMIT $3::int
FOR UPDATE
