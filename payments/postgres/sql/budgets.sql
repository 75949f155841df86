-- What the buckets of accounts hold now.
SELECT b.account, b.livemode, {tokens}, {rate}, {interactive waits}
FROM (SELECT coalesce($3::timestamptz, now()) AS now, $4::float8 AS setting) AS clock
CROSS JOIN unnest($1::text[], $2::bool[]) AS u(account, livemode)
JOIN rate_budgets b ON b.account = u.account AND b.livemode = u.livemode
