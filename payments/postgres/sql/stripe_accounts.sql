-- The Stripe accounts that anything here goes to: those of tenants, those that have a rate, and those that the newest payments of each tenant are pinned
-- to. No index holds the account of payments, so the newest must do.
SELECT account FROM (
    SELECT t.account FROM tenants t UNION SELECT t.stripe_account FROM tenants t UNION SELECT b.account FROM rate_budgets b
    UNION SELECT p.stripe_account FROM tenants t CROSS JOIN LATERAL (
        SELECT p.stripe_account FROM payments p WHERE p.tenant_id = t.id AND p.created_at > '-infinity' ORDER BY p.created_at DESC, p.id DESC LIMIT 100) p
) known WHERE account <> '' ORDER BY account
