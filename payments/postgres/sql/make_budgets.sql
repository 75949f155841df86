-- A budget that is not there yet is a full bucket. The order keeps writers who make the same ones from waiting in a circle.
INSERT INTO rate_budgets (account, livemode, tokens, updated_at)
SELECT u.account, u.livemode, {burst}, clock.now
FROM unnest($1::text[], $2::bool[]) AS u(account, livemode)
CROSS JOIN (SELECT coalesce($3::timestamptz, now()) AS now, $4::float8 AS setting) AS clock
LEFT JOIN rate_budgets b ON b.account = u.account AND b.livemode = u.livemode
WHERE b.account IS NULL
ORDER BY u.account, u.livemode
ON CONFLICT (account, livemode) DO NOTHING
