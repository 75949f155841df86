SELECT b.tenant_id, b.id FROM batches b
WHERE b.completed_at IS NULL AND (b.tenant_id, b.id) > ($1::text, $2::bytea)
ORDER BY b.tenant_id, b.id LIMIT $3
