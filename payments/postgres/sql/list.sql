-- Payments, newest first, by keyset. Each tenant's newest come from its own index range. $9 are the kinds.
WITH page AS (
    SELECT p.tenant_id, p.id, p.created_at
    FROM tenants t CROSS JOIN LATERAL (
        SELECT p.tenant_id, p.id, p.created_at FROM payments p
        LEFT JOIN queue q ON q.tenant_id = p.tenant_id AND q.payment_id = p.id
        WHERE p.tenant_id = t.id AND p.created_at > '-infinity' -- the index's condition
            AND p.kind = ANY ($9::text[])
            AND ($2::text IS NULL OR CASE WHEN p.status IN ('received', 'waiting') AND q.token IS NOT NULL THEN 'processing' ELSE p.status END = $2)
            AND ($3::text IS NULL OR p.customer = $3)
            AND ($4::text IS NULL OR p.idempotency_key = $4)
            AND ($5::timestamptz IS NULL OR (p.created_at, p.id) < ($5, $6::bytea) OR (p.created_at = $5 AND p.id = $6 AND p.tenant_id < $7))
            AND ($5::timestamptz IS NULL OR p.created_at <= $5)
        ORDER BY p.created_at DESC, p.id DESC LIMIT $8) p
    WHERE $1::text IS NULL OR t.id = $1
    ORDER BY p.created_at DESC, p.id DESC, p.tenant_id DESC LIMIT $8
)
SELECT {payment}, {ticket}
FROM page JOIN payments p ON p.tenant_id = page.tenant_id AND p.id = page.id
LEFT JOIN queue q ON q.tenant_id = p.tenant_id AND q.payment_id = p.id
ORDER BY page.created_at DESC, page.id DESC, page.tenant_id DESC
