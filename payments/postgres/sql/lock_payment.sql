SELECT {payment}, {ticket}, coalesce($3::timestamptz, now())
FROM payments p LEFT JOIN queue q ON q.tenant_id = p.tenant_id AND q.payment_id = p.id
WHERE p.tenant_id = $1 AND p.id = $2
FOR UPDATE OF p
