SELECT q.tenant_id, q.payment_id FROM queue q JOIN unnest($1::text[], $2::bytea[]) AS u(tenant_id, payment_id)
    ON q.tenant_id = u.tenant_id AND q.payment_id = u.payment_id
ORDER BY q.tenant_id, q.payment_id FOR UPDATE OF q
