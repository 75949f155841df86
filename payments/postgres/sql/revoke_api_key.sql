UPDATE api_keys SET revoked_at = coalesce(revoked_at, $2::timestamptz, now()) WHERE id = $1
