-- Locks, in the order in which everybody locks, those batches whose completion was not told yet. The condition is written so that no plan goes
-- through the index of all those.
SELECT {batch}, coalesce($3::timestamptz, now())
FROM unnest($1::text[], $2::bytea[]) AS u(tenant_id, id)
JOIN batches b ON b.tenant_id = u.tenant_id AND b.id = u.id
WHERE coalesce(b.completed_at, 'infinity') = 'infinity'
ORDER BY b.tenant_id, b.id
FOR UPDATE OF b
