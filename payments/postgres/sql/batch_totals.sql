-- How far batches are: their children by status, as shown, and currency. Each child is one probe by its id: OFFSET 0 keeps every plan to that.
SELECT b.tenant_id, b.id, s.status, p.currency, count(*)::int, sum(p.amount)::bigint
FROM unnest($1::text[], $2::bytea[]) AS u(tenant_id, id)
CROSS JOIN LATERAL (SELECT * FROM batches b WHERE b.tenant_id = u.tenant_id AND b.id = u.id OFFSET 0) b
CROSS JOIN LATERAL generate_series(0, b.count - 1) AS i
CROSS JOIN LATERAL (SELECT p.id, p.status, p.currency, p.amount FROM payments p WHERE p.tenant_id = b.tenant_id AND p.id = {child} OFFSET 0) p
CROSS JOIN LATERAL (
    SELECT CASE WHEN p.status IN ('received', 'waiting') AND EXISTS (
        SELECT FROM queue q WHERE q.tenant_id = b.tenant_id AND q.payment_id = p.id AND q.token IS NOT NULL) THEN 'processing' ELSE p.status END AS status
    OFFSET 0
) s
GROUP BY b.tenant_id, b.id, s.status, p.currency
