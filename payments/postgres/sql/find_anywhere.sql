-- An operator names a payment without its tenant: one probe for each tenant, since no index is on id alone.
SELECT {payment}, {ticket}
FROM tenants t JOIN payments p ON p.tenant_id = t.id AND p.id = $1
LEFT JOIN queue q ON q.tenant_id = p.tenant_id AND q.payment_id = p.id
