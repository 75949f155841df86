-- Must return no row: a payment that somebody must act on has exactly one ticket, and no other has one; and a ticket is kept back (park_ticket.sql) only while
-- a cancel has still to end.
SELECT p.tenant_id, p.id, p.status, 'no ticket' FROM payments p
WHERE p.status IN ({ticket statuses})
    AND NOT EXISTS (SELECT FROM queue q WHERE q.tenant_id = p.tenant_id AND q.payment_id = p.id)
UNION ALL
SELECT q.tenant_id, q.payment_id, coalesce(p.status, ''), 'ticket' FROM queue q
LEFT JOIN payments p ON p.tenant_id = q.tenant_id AND p.id = q.payment_id
WHERE p.status IS NULL OR p.status NOT IN ({ticket statuses})
UNION ALL
SELECT q.tenant_id, q.payment_id, p.status, 'kept back' FROM queue q
JOIN payments p ON p.tenant_id = q.tenant_id AND p.id = q.payment_id
WHERE q.due_at >= '9999-01-01T00:00:00Z' AND NOT EXISTS (
    SELECT FROM operations o JOIN payments x ON x.tenant_id = o.tenant_id AND x.id = o.id
    WHERE o.tenant_id = q.tenant_id AND o.payment_id = q.payment_id AND o.kind = 'cancel' AND x.status IN ({statuses that hold up}))
LIMIT 1000
