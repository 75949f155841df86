-- The batches' own payments get the number of their one event.
WITH told AS (
    UPDATE batches b SET completed_at = $3::timestamptz FROM unnest($1::text[], $2::bytea[]) AS u(tenant_id, id)
    WHERE b.tenant_id = u.tenant_id AND b.id = u.id
    RETURNING b.tenant_id, b.id
)
UPDATE payments p SET sequence = 1, updated_at = greatest(p.updated_at, $3::timestamptz) FROM told t WHERE p.tenant_id = t.tenant_id AND p.id = t.id
