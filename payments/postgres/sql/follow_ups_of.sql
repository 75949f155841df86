-- The follow-ups of a charge, of one kind or of all, as they were accepted. Each is one probe by its id: OFFSET 0 keeps every plan to that.
SELECT {payment}, {ticket}, o.number, coalesce(o.stripe_refund, '')
FROM (SELECT * FROM operations o WHERE o.tenant_id = $1 AND o.payment_id = $2 ORDER BY o.number OFFSET 0) o
CROSS JOIN LATERAL (SELECT * FROM payments p WHERE p.tenant_id = o.tenant_id AND p.id = o.id OFFSET 0) p
LEFT JOIN LATERAL (SELECT * FROM queue q WHERE q.tenant_id = p.tenant_id AND q.payment_id = p.id OFFSET 0) q ON true
WHERE $3::text IS NULL OR o.kind = $3
ORDER BY o.number
