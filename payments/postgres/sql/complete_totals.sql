-- Totals, as of batch_totals.sql, of those batches whose completion was not told yet and whose children all exist and are final. It is one statement,
-- so that what it counts is what it has looked at, and of its own, behind the lock, so that it sees what was committed while that waited. The look
-- ends at the first child that is not final. Plans are kept as in batch_totals.sql.
WITH complete AS MATERIALIZED (
    SELECT b.tenant_id, b.id, b.idempotency_key, b.count
    FROM unnest($1::text[], $2::bytea[]) AS u(tenant_id, id)
    CROSS JOIN LATERAL (SELECT * FROM batches b WHERE b.tenant_id = u.tenant_id AND b.id = u.id OFFSET 0) b
    WHERE b.completed_at IS NULL AND NOT EXISTS (
        SELECT FROM generate_series(0, b.count - 1) AS i
        WHERE coalesce((SELECT p.finalized_at IS NULL FROM payments p WHERE p.tenant_id = b.tenant_id AND p.id = {child}), true))
)
SELECT b.tenant_id, b.id, p.status, p.currency, count(*)::int, sum(p.amount)::bigint
FROM complete b CROSS JOIN LATERAL generate_series(0, b.count - 1) AS i
CROSS JOIN LATERAL (SELECT p.status, p.currency, p.amount FROM payments p WHERE p.tenant_id = b.tenant_id AND p.id = {child} OFFSET 0) p
GROUP BY b.tenant_id, b.id, p.status, p.currency
