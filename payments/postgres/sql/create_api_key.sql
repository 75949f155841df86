INSERT INTO api_keys (id, tenant_id, hash, prefix, scopes, expires_at, created_at)
VALUES ($1, $2, $3, $4, $5, $6, coalesce($7::timestamptz, now())) RETURNING created_at
