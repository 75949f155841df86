-- What was sent for these payments is not known: it may have been at any time from the given one until now. Where no account is pinned the one that
-- Stripe's record was found in is, or else the one that the tenant's payments go to.
UPDATE payments p SET in_doubt = true, first_submit_at = least(p.first_submit_at, u.since), last_submit_at = $3::timestamptz, absent_at = NULL,
    stripe_account = coalesce(p.stripe_account, nullif(u.account, '')),
    livemode = CASE WHEN p.stripe_account IS NULL AND u.account <> '' THEN u.livemode ELSE p.livemode END
FROM unnest($1::text[], $2::bytea[], $4::timestamptz[], $5::text[], $6::bool[]) AS u(tenant_id, id, since, account, livemode)
WHERE p.tenant_id = u.tenant_id AND p.id = u.id
