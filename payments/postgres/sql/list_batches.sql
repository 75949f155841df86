-- A tenant's batches, oldest first, by keyset.
SELECT {batch} FROM batches b
WHERE b.tenant_id = $1 AND b.created_at > '-infinity' -- the index's condition
    AND (b.created_at, b.id) > (coalesce($2::timestamptz, '-infinity'), coalesce($3::bytea, ''))
ORDER BY b.created_at, b.id LIMIT $4
