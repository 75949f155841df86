SELECT id, coalesce(stripe_account, ''), coalesce(stripe_key_ref, ''), created_at FROM tenants ORDER BY id
