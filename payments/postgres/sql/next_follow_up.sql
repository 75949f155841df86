-- What may go on once a follow-up ($2) has ended: the first one behind it that has still to be worked on, and the charge whose ticket a cancel has kept
-- back.
(SELECT e.id
FROM (SELECT * FROM operations o WHERE o.tenant_id = $1 AND o.id = $2 OFFSET 0) o
CROSS JOIN LATERAL (
    SELECT n.* FROM operations n WHERE n.tenant_id = o.tenant_id AND n.payment_id = o.payment_id AND n.number > o.number ORDER BY n.number OFFSET 0) e
CROSS JOIN LATERAL (SELECT x.status FROM payments x WHERE x.tenant_id = e.tenant_id AND x.id = e.id OFFSET 0) x
WHERE x.status IN ({statuses that hold up})
ORDER BY e.number LIMIT 1)
UNION ALL
SELECT o.payment_id FROM operations o WHERE o.tenant_id = $1 AND o.id = $2 AND o.kind = 'cancel'
