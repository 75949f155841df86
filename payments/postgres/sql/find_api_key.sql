SELECT id, tenant_id, prefix, scopes, created_at, expires_at, revoked_at, hash FROM api_keys
WHERE hash = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > coalesce($2::timestamptz, now()))
