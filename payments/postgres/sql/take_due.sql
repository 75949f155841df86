-- Finds, without locking anything, tickets of a lane that are due and whose accounts have room: tenants in turn, beginning after the tenant that
-- was served last, and each tenant's oldest first. What is found is locked and asked again by take_paced.sql.
--
-- The walk goes from tenant to tenant by one index probe each and ends when it has met as many with room as are needed; those without are passed
-- over, whatever their backlog. Most tenants share the installation's account: once enough of them were met, or one while it has no room, the walk
-- goes on over those with a way of their own alone, so that a thousand who wait for the same tokens are not all asked.
--
-- A payment pinned to another account than its tenant's is spent nothing for: from here no call is made for it. It must not wait for tokens, since
-- those behind it would. Rows without a payment name accounts without room for which tickets wait, the next to have room first.
WITH RECURSIVE clock AS (SELECT coalesce($3::timestamptz, now()) AS now, $7::float8 AS setting),
shared AS MATERIALIZED (
    SELECT CASE WHEN $5::text = '' THEN $2::int ELSE {room} END AS room
    FROM clock LEFT JOIN rate_budgets b ON b.account = $5::text AND b.livemode = $6::bool
),
walk AS (
    SELECT 0 AS turn, $4::text COLLATE "C" AS tenant_id, false AS behind, 0 AS met, (SELECT greatest(1, 4 * room) FROM shared) AS sharing,
        false AS due, NULL::text COLLATE "C" AS account, NULL::bool AS livemode, 0 AS room
    UNION ALL
    SELECT w.turn + 1, n.tenant_id, r.behind, w.met + (d.due AND a.room > 0)::int, w.sharing - (d.due AND NOT a.own)::int,
        d.due, a.account, a.livemode, a.room
    FROM walk w CROSS JOIN clock CROSS JOIN shared
    CROSS JOIN LATERAL (
        SELECT coalesce(w.tenant_id, '') AS low, w.behind OR w.tenant_id IS NULL AS behind,
            CASE WHEN w.behind OR w.tenant_id IS NULL THEN $4::text ELSE '~' END AS high -- no tenant's id is as high as ~
    ) r
    CROSS JOIN LATERAL (
        SELECT (SELECT q.tenant_id FROM queue q WHERE q.lane = $1::int2 AND q.tenant_id > r.low AND q.tenant_id <= r.high
            ORDER BY q.tenant_id LIMIT 1) AS tenant_id OFFSET 0
    ) q
    CROSS JOIN LATERAL (
        SELECT CASE WHEN w.sharing > 0 THEN q.tenant_id ELSE (
            SELECT t.id FROM tenants t WHERE (t.stripe_account IS NOT NULL OR t.stripe_key_ref IS NOT NULL)
                AND t.id >= q.tenant_id AND t.id <= r.high ORDER BY t.id LIMIT 1) END AS tenant_id OFFSET 0
    ) n
    CROSS JOIN LATERAL (
        SELECT coalesce((SELECT q.due_at FROM queue q WHERE q.lane = $1::int2 AND q.tenant_id = n.tenant_id ORDER BY q.due_at LIMIT 1)
            <= clock.now, false) AS due OFFSET 0
    ) d
    LEFT JOIN tenants t ON d.due AND t.id = n.tenant_id
    LEFT JOIN rate_budgets b ON b.account = t.account AND b.livemode = t.livemode
    CROSS JOIN LATERAL (
        SELECT o.own, CASE WHEN o.own THEN t.account ELSE nullif($5::text, '') END AS account, CASE WHEN o.own THEN t.livemode ELSE $6::bool END AS livemode,
            CASE WHEN NOT o.own THEN shared.room WHEN t.account IS NULL THEN $2::int ELSE {room} END AS room
        FROM (SELECT coalesce(t.stripe_account, t.stripe_key_ref) IS NOT NULL AS own) o
    ) a
    WHERE w.met < 4 * $2::int AND (w.tenant_id IS NOT NULL OR NOT w.behind)
),
tenant AS MATERIALIZED (SELECT * FROM walk WHERE due),
chosen AS MATERIALIZED (
    SELECT d.tenant_id, d.payment_id, t.account, t.livemode, row_number() OVER (ORDER BY d.round, t.turn) AS place
    FROM tenant t, clock, LATERAL (
        SELECT q.tenant_id, q.payment_id, row_number() OVER (ORDER BY q.due_at) AS round FROM queue q
        WHERE q.lane = $1::int2 AND q.tenant_id = t.tenant_id AND q.due_at <= clock.now
        ORDER BY q.due_at LIMIT least(4 * t.room, 1 + 16 * t.room / greatest(1, (SELECT count(*) FROM tenant WHERE room > 0)))) d
    WHERE t.room > 0 ORDER BY d.round, t.turn LIMIT 4 * $2::int
),
found AS (
    SELECT c.tenant_id, c.payment_id, coalesce(c.account, '') AS account, coalesce(c.livemode, false) AS livemode,
        c.account IS NULL OR coalesce(p.stripe_account, c.account) <> c.account OR p.stripe_account IS NOT NULL AND p.livemode <> c.livemode AS free, c.place
    FROM chosen c JOIN payments p ON p.tenant_id = c.tenant_id AND p.id = c.payment_id
    UNION ALL
    SELECT NULL, NULL, e.account, e.livemode, false, NULL FROM (
        SELECT t.account, t.livemode FROM tenant t WHERE t.room = 0 GROUP BY t.account, t.livemode) e
)
SELECT f.tenant_id, f.payment_id, f.account, f.livemode, f.free, {tokens} AS tokens, {rate} AS rate, {interactive waits},
    b.account IS NOT NULL, (1 - {tokens}) / {rate} AS wait,
    coalesce(extract(epoch FROM CASE WHEN $1::int2 = 1 THEN b.interactive_waits_until ELSE b.bulk_waits_until END - clock.now)::float8, 0)
FROM clock CROSS JOIN found f LEFT JOIN rate_budgets b ON b.account = f.account AND b.livemode = f.livemode
ORDER BY f.place NULLS LAST, wait
LIMIT 4 * $2::int + 64
