-- Ends a key, and tells whose it was and whether that ended it: it may have been revoked before.
WITH was AS (SELECT id, revoked_at FROM api_keys WHERE id = $1 FOR UPDATE)
UPDATE api_keys k SET revoked_at = coalesce(k.revoked_at, $2::timestamptz, now()) FROM was WHERE k.id = was.id
RETURNING k.id, k.tenant_id, was.revoked_at IS NULL
