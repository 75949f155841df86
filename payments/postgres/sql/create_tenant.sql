INSERT INTO tenants (id, stripe_account, stripe_key_ref, created_at)
VALUES ($1, nullif($2, ''), nullif($3, ''), coalesce($4::timestamptz, now())) RETURNING created_at
