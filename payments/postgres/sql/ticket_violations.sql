-- Must return no row: a payment that somebody must act on has exactly one ticket, and no other has one.
SELECT p.tenant_id, p.id, p.status, 'no ticket' FROM payments p
WHERE p.status IN ({ticket statuses})
    AND NOT EXISTS (SELECT FROM queue q WHERE q.tenant_id = p.tenant_id AND q.payment_id = p.id)
UNION ALL
SELECT q.tenant_id, q.payment_id, coalesce(p.status, ''), 'ticket' FROM queue q
LEFT JOIN payments p ON p.tenant_id = q.tenant_id AND p.id = q.payment_id
WHERE p.status IS NULL OR p.status NOT IN ({ticket statuses})
LIMIT 1000
