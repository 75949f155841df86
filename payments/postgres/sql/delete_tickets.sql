DELETE FROM queue q USING unnest($1::text[], $2::bytea[]) AS u(tenant_id, payment_id)
WHERE q.tenant_id = u.tenant_id AND q.payment_id = u.payment_id
