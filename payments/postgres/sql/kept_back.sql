-- Tickets of a lane that are kept back (park_ticket.sql) although no cancel of their charge is open, up to a hundred. Tenants that have tickets are found by
-- one index probe each, and what is kept back of each tenant by one more: nearly always there is nothing. A cancel that has succeeded wakes nothing.
WITH RECURSIVE tenant AS (
    (SELECT q.tenant_id FROM queue q WHERE q.lane = $1::int2 ORDER BY q.tenant_id LIMIT 1)
    UNION ALL
    SELECT (SELECT q.tenant_id FROM queue q WHERE q.lane = $1::int2 AND q.tenant_id > t.tenant_id ORDER BY q.tenant_id LIMIT 1)
    FROM tenant t WHERE t.tenant_id IS NOT NULL
)
SELECT k.tenant_id, k.payment_id
FROM (SELECT * FROM tenant OFFSET 0) t
CROSS JOIN LATERAL (
    SELECT q.tenant_id, q.payment_id FROM queue q
    WHERE q.lane = $1::int2 AND q.tenant_id = t.tenant_id AND q.due_at >= '9999-01-01T00:00:00Z' ORDER BY q.due_at LIMIT 1000
) k
WHERE NOT EXISTS (
    SELECT FROM (SELECT * FROM operations o WHERE o.tenant_id = k.tenant_id AND o.payment_id = k.payment_id AND o.kind = 'cancel' OFFSET 0) o
    CROSS JOIN LATERAL (SELECT x.status FROM payments x WHERE x.tenant_id = o.tenant_id AND x.id = o.id OFFSET 0) x
    WHERE x.status NOT IN ('failed', 'rejected', 'expired', 'canceled'))
LIMIT 100
