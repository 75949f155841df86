SELECT {batch}
FROM unnest($1::text[], $2::bytea[]) AS u(tenant_id, id)
JOIN batches b ON b.tenant_id = u.tenant_id AND b.id = u.id
