-- Locks the tickets of payments, whoever has them.
SELECT q.tenant_id, q.payment_id FROM unnest($1::text[], $2::bytea[]) AS u(tenant_id, id)
JOIN queue q ON q.tenant_id = u.tenant_id AND q.payment_id = u.id
ORDER BY q.tenant_id, q.payment_id
FOR UPDATE OF q
