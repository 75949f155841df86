SELECT {payment}, {ticket}
FROM unnest($1::text[], $2::bytea[]) AS u(tenant_id, id)
JOIN payments p ON p.tenant_id = u.tenant_id AND p.id = u.id
LEFT JOIN queue q ON q.tenant_id = p.tenant_id AND q.payment_id = p.id
