-- As list_batches.sql, the parts of one run.
SELECT {batch} FROM batches b
WHERE b.tenant_id = $1 AND b.parent = $5::text
    AND (b.created_at, b.id) > (coalesce($2::timestamptz, '-infinity'), coalesce($3::bytea, ''))
ORDER BY b.created_at, b.id LIMIT $4
