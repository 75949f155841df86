SELECT p.tenant_id, coalesce($3::timestamptz, now()) FROM payments p JOIN unnest($1::text[], $2::bytea[]) AS u(tenant_id, id)
    ON p.tenant_id = u.tenant_id AND p.id = u.id
ORDER BY p.tenant_id, p.id FOR UPDATE OF p
