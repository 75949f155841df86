-- An operator names a payment without its tenant: one probe for each tenant, since no index is on id alone. OFFSET 0 keeps it that way.
SELECT {payment}, {ticket}
FROM tenants t CROSS JOIN LATERAL (SELECT * FROM payments p WHERE p.tenant_id = t.id AND p.id = $1 OFFSET 0) p
LEFT JOIN queue q ON q.tenant_id = p.tenant_id AND q.payment_id = p.id
