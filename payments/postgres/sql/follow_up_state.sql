-- The charge of a follow-up, what Stripe calls its refund, and whether one that was accepted earlier has still to be worked on.
SELECT {payment}, {ticket}, o.number, coalesce(o.stripe_refund, ''), EXISTS (
    SELECT FROM operations e CROSS JOIN LATERAL (SELECT x.status FROM payments x WHERE x.tenant_id = e.tenant_id AND x.id = e.id OFFSET 0) x
    WHERE e.tenant_id = o.tenant_id AND e.payment_id = o.payment_id AND e.number < o.number AND x.status IN ({statuses that hold up}))
FROM (SELECT * FROM operations o WHERE o.tenant_id = $1 AND o.id = $2 OFFSET 0) o
CROSS JOIN LATERAL (SELECT * FROM payments p WHERE p.tenant_id = o.tenant_id AND p.id = o.payment_id OFFSET 0) p
LEFT JOIN LATERAL (SELECT * FROM queue q WHERE q.tenant_id = p.tenant_id AND q.payment_id = p.id OFFSET 0) q ON true
