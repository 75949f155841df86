-- The children of a batch that are there, in order. Each is one probe by its id: OFFSET 0 keeps every plan to that.
SELECT {payment}, {ticket}
FROM batches b CROSS JOIN LATERAL generate_series(0, b.count - 1) AS i
CROSS JOIN LATERAL (SELECT * FROM payments p WHERE p.tenant_id = b.tenant_id AND p.id = {child} OFFSET 0) p
LEFT JOIN LATERAL (SELECT * FROM queue q WHERE q.tenant_id = p.tenant_id AND q.payment_id = p.id OFFSET 0) q ON true
WHERE b.tenant_id = $1 AND b.id = $2
ORDER BY i
