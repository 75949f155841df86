-- Which of the payments (tenant, and the account that they are pinned to) are held back by a pause, by their places in the arrays. The installation's
-- own account is known to workers alone: here a paused account that is no tenant's is taken for it.
SELECT u.place FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS u(tenant_id, account, place) LEFT JOIN tenants t ON t.id = u.tenant_id
WHERE EXISTS (
    SELECT FROM pauses a WHERE (a.until IS NULL OR a.until > coalesce($1::timestamptz, now())) AND (a.tenant_id IS NULL OR a.tenant_id = u.tenant_id)
        AND (a.account IS NULL OR a.account = CASE WHEN coalesce(t.stripe_account, t.stripe_key_ref) IS NOT NULL THEN t.account
            WHEN u.account <> '' THEN u.account
            WHEN NOT EXISTS (SELECT FROM tenants o WHERE o.account = a.account) THEN a.account END))
