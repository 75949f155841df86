-- As take_due.sql, for tickets that must be worked on alone: the oldest of those whose accounts have room, and some of those whose accounts have none.
WITH clock AS (SELECT coalesce($3::timestamptz, now()) AS now, $4::float8 AS setting),
{hold of take_due_alone},
found AS MATERIALIZED (
    SELECT f.*, b.account IS NOT NULL AS there, {tokens} AS tokens, {rate} AS rate, {interactive waits} AS interactive_waits, (1 - {tokens}) / {rate} AS wait,
        coalesce(extract(epoch FROM CASE WHEN $1::int2 = 1 THEN b.interactive_waits_until ELSE b.bulk_waits_until END - clock.now)::float8, 0) AS marked,
        f.free OR {room} > 0 AS pays
    FROM clock CROSS JOIN (
        SELECT q.tenant_id, q.payment_id, q.due_at, {account} AS account, {livemode} AS livemode,
            {account} IS NULL OR p.stripe_account IS NOT NULL AND (p.stripe_account <> {account} OR p.livemode <> {livemode}) AS free
        FROM queue q JOIN payments p ON p.tenant_id = q.tenant_id AND p.id = q.payment_id LEFT JOIN tenants t ON t.id = q.tenant_id, clock
        WHERE q.lane = $1::int2 AND {alone} AND q.due_at <= clock.now AND NOT {q held}) f
    LEFT JOIN rate_budgets b ON b.account = f.account AND b.livemode = f.livemode
)
SELECT tenant_id, payment_id, coalesce(account, ''), coalesce(livemode, false), tenant_id, free, tokens, rate, interactive_waits, there, wait, marked
FROM found ORDER BY pays DESC, due_at LIMIT 8 * $2::int
