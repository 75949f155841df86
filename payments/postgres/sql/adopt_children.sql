-- Payments that were stored again without their batch, which was forgotten, belong to it once it is there again.
UPDATE payments p SET batch_id = $3::text FROM (
    SELECT p.tenant_id, p.id FROM unnest($2::bytea[]) AS u(id) JOIN payments p ON p.tenant_id = $1::text AND p.id = u.id
    WHERE p.batch_id IS NULL ORDER BY p.tenant_id, p.id FOR UPDATE OF p) c
WHERE p.tenant_id = c.tenant_id AND p.id = c.id
