-- Reads whichever rows are there now. It is a statement of its own, so that it sees what was committed while the insert waited. The id
-- stands for the key that it is made of.
SELECT {payment}, {ticket}, coalesce($3::timestamptz, now())
FROM unnest($1::text[], $2::bytea[]) AS u(tenant_id, id)
JOIN payments p ON p.tenant_id = u.tenant_id AND p.id = u.id
LEFT JOIN queue q ON q.tenant_id = p.tenant_id AND q.payment_id = p.id
