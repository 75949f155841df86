-- Reads whatever stands under an id, with what it has as a follow-up: number 0 when it is none.
SELECT {payment}, {ticket}, coalesce(o.number, 0), coalesce(o.stripe_refund, '')
FROM payments p
LEFT JOIN queue q ON q.tenant_id = p.tenant_id AND q.payment_id = p.id
LEFT JOIN operations o ON o.tenant_id = p.tenant_id AND o.id = p.id
WHERE p.tenant_id = $1 AND p.id = $2
