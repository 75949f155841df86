-- Locks, in the order in which everybody locks, the tickets that hold the caller's tokens, or ($4) whatever token.
SELECT q.tenant_id, q.payment_id, q.token
FROM unnest($1::text[], $2::bytea[], $3::bytea[]) AS u(tenant_id, payment_id, token)
JOIN queue q ON q.tenant_id = u.tenant_id AND q.payment_id = u.payment_id
WHERE q.token = u.token OR $4::bool
ORDER BY q.tenant_id, q.payment_id
FOR UPDATE OF q
