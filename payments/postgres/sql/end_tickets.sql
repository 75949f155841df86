-- Deletes the tickets that hold the caller's tokens: what lock_tickets does for those that stay.
DELETE FROM queue q USING unnest($1::text[], $2::bytea[], $3::bytea[]) AS u(tenant_id, payment_id, token)
WHERE q.tenant_id = u.tenant_id AND q.payment_id = u.payment_id AND q.token = u.token
RETURNING q.tenant_id, q.payment_id, q.token
