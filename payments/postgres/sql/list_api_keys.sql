SELECT id, tenant_id, prefix, scopes, created_at, expires_at, revoked_at FROM api_keys
WHERE $1::text IS NULL OR tenant_id = $1 ORDER BY tenant_id, created_at, id
