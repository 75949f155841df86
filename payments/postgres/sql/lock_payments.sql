-- Locks payments whose tickets, where they have any, are locked; in the order in which everybody locks.
SELECT p.tenant_id, p.id FROM unnest($1::text[], $2::bytea[]) AS u(tenant_id, id)
JOIN payments p ON p.tenant_id = u.tenant_id AND p.id = u.id
ORDER BY p.tenant_id, p.id
FOR UPDATE OF p
