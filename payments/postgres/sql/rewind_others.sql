-- The next payments that were given up or wait for a person, among a stretch of all payments; and where the stretch ends, in a row of its own.
WITH stretch AS MATERIALIZED (
    SELECT p.tenant_id, p.id, p.status FROM payments p WHERE (p.tenant_id, p.id) > ($1::text, $2::bytea) ORDER BY p.tenant_id, p.id LIMIT $3::int
)
SELECT tenant_id, id, false AS ends FROM stretch WHERE status IN ('stalled', 'needs_review')
UNION ALL
(SELECT tenant_id, id, true FROM stretch ORDER BY tenant_id DESC, id DESC LIMIT 1)
