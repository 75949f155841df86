-- Finds, without locking anything, tickets of a lane that are due and whose accounts have room: accounts in turn, the tenants of an account in
-- turn, and each tenant's oldest first. What is found is locked and asked again by take_paced.sql.
--
-- One walk goes over the tenants that share the installation's account (home), beginning after the one that was served last; it ends when it has
-- met enough for the room that there is, or one if there is none. The other goes over the tenants with a way of their own, from account to account,
-- beginning after the one that was served last; those without room are passed over, whatever their backlog, and hide nobody. Each step is an index
-- probe or two: from a tenant to the next one that has tickets.
--
-- A payment pinned to another account than its tenant's is spent nothing for: from here no call is made for it. It must not wait for tokens, since
-- those behind it would. Rows without a payment name accounts without room for which tickets wait, the next to have room first.
--
-- Tenants that are held back are passed over as if nothing were due, and so are tickets that must be worked on alone.
WITH RECURSIVE clock AS (SELECT coalesce($3::timestamptz, now()) AS now, $7::float8 AS setting),
{hold of take_due},
home AS MATERIALIZED (
    SELECT nullif($5::text, '') AS account, $6::bool AS livemode, CASE WHEN $5::text = '' THEN $2::int ELSE {room} END AS room, {home held} AS held
    FROM clock LEFT JOIN rate_budgets b ON b.account = $5::text AND b.livemode = $6::bool
),
neighbour AS (
    SELECT 0 AS turn, $8::text COLLATE "C" AS start, $8::text COLLATE "C" AS tenant_id, false AS behind, 0 AS met, false AS due
    UNION ALL
    SELECT w.turn + 1, w.start, n.tenant_id, r.behind, w.met + d.due::int, d.due
    FROM neighbour w CROSS JOIN clock CROSS JOIN home
    CROSS JOIN LATERAL ({part}) r
    CROSS JOIN LATERAL ({next with tickets}) n
    CROSS JOIN LATERAL (
        SELECT {due} AND NOT EXISTS (SELECT FROM tenants t WHERE t.id = n.tenant_id AND {own way}) AND NOT {n held} AS due OFFSET 0
    ) d
    WHERE NOT home.held AND w.met < CASE WHEN home.room > 0 THEN 2 * home.room + 8 ELSE 1 END AND (w.tenant_id IS NOT NULL OR NOT w.behind)
),
stranger AS (
    SELECT 0 AS turn, $4::text COLLATE "C" AS start, $4::text COLLATE "C" AS tenant_id, false AS behind, 0 AS met, '{}'::text[] COLLATE "C" AS names, false AS due,
        NULL::text COLLATE "C" AS account, NULL::bool AS livemode, 0 AS room
    UNION ALL
    SELECT w.turn + 1, w.start, o.tenant_id, r.behind, w.met + (a.new AND a.room > 0)::int, CASE WHEN a.new THEN w.names || a.name ELSE w.names END, a.new,
        t.account, t.livemode, a.room
    FROM stranger w CROSS JOIN clock
    CROSS JOIN LATERAL ({part}) r
    CROSS JOIN LATERAL ({next with tickets}) n
    CROSS JOIN LATERAL (
        SELECT (SELECT t.id FROM tenants t WHERE {own way} AND t.id >= n.tenant_id AND t.id <= r.high ORDER BY t.id LIMIT 1) AS tenant_id OFFSET 0
    ) o
    LEFT JOIN tenants t ON t.id = o.tenant_id
    LEFT JOIN rate_budgets b ON b.account = t.account AND b.livemode = t.livemode
    CROSS JOIN LATERAL (
        SELECT m.name, CASE WHEN t.account IS NULL THEN $2::int ELSE {room} END AS room, t.id IS NOT NULL AND m.name <> ALL (w.names) AND {due} AND NOT {n held} AS new
        FROM (SELECT coalesce(t.account || ' ' || t.livemode, t.id) AS name) m, LATERAL (SELECT t.id AS tenant_id) n
    ) a
    WHERE NOT (SELECT everything FROM holding) AND w.met < 2 * $2::int AND (w.tenant_id IS NOT NULL OR NOT w.behind)
),
account AS MATERIALIZED (
    SELECT CASE WHEN behind THEN 2 ELSE 0 END AS part, turn, tenant_id AS slot, account, livemode, room FROM stranger WHERE due
    UNION ALL
    SELECT 1, 0, '~', account, livemode, room FROM home WHERE EXISTS (SELECT FROM neighbour WHERE due)
),
size AS MATERIALIZED (SELECT count(*) FILTER (WHERE room > 0) AS accounts FROM account),
member AS MATERIALIZED (
    SELECT a.*, m.tenant_id, m.place, count(*) OVER (PARTITION BY a.slot) AS members
    FROM account a LEFT JOIN unnest($9::text[], $10::bool[], $11::text[]) AS l(account, livemode, after)
        ON l.account = a.account AND l.livemode = a.livemode, clock, LATERAL (
        SELECT n.tenant_id, row_number() OVER (ORDER BY n.tenant_id <= coalesce(l.after, ''), n.tenant_id) AS place
        FROM (SELECT t.id AS tenant_id FROM tenants t WHERE t.account = a.account AND t.livemode = a.livemode) n WHERE {due} AND NOT {n held}
        UNION ALL
        SELECT a.slot, 1 WHERE a.account IS NULL) m
    WHERE a.room > 0 AND a.slot <> '~' AND m.place <= 2 * a.room + 8
    UNION ALL
    SELECT a.*, n.tenant_id, n.turn, count(*) OVER () FROM account a, neighbour n WHERE a.room > 0 AND a.slot = '~' AND n.due
),
candidate AS (
    SELECT m.part, m.turn, m.slot, m.account, m.livemode, m.room, d.tenant_id, d.payment_id,
        row_number() OVER (PARTITION BY m.slot ORDER BY d.round, m.place) AS round
    FROM member m, size, clock, LATERAL (
        SELECT x.*, row_number() OVER () AS round FROM (
            SELECT q.tenant_id, q.payment_id FROM queue q
            WHERE q.lane = $1::int2 AND q.tenant_id = m.tenant_id AND q.due_at <= clock.now AND NOT {alone}
            ORDER BY q.due_at LIMIT least(2 * m.room + 16, 1 + 16 * $2::int / greatest(1, size.accounts), 1 + 4 * (2 * m.room + 16) / m.members)) x) d
),
chosen AS MATERIALIZED (
    SELECT *, row_number() OVER (ORDER BY round, part, turn) AS place FROM candidate WHERE round <= 2 * room + 16
    ORDER BY round, part, turn LIMIT 4 * $2::int
),
found AS (
    SELECT c.tenant_id, c.payment_id, coalesce(c.account, '') AS account, coalesce(c.livemode, false) AS livemode, c.slot, c.place,
        c.account IS NULL OR coalesce(p.stripe_account, c.account) <> c.account OR p.stripe_account IS NOT NULL AND p.livemode <> c.livemode AS free
    FROM chosen c JOIN payments p ON p.tenant_id = c.tenant_id AND p.id = c.payment_id
    UNION ALL
    SELECT NULL, NULL, account, livemode, slot, NULL, false FROM account WHERE room = 0
)
SELECT f.tenant_id, f.payment_id, f.account, f.livemode, f.slot, f.free, {tokens} AS tokens, {rate} AS rate, {interactive waits},
    b.account IS NOT NULL, (1 - {tokens}) / {rate} AS wait,
    coalesce(extract(epoch FROM CASE WHEN $1::int2 = 1 THEN b.interactive_waits_until ELSE b.bulk_waits_until END - clock.now)::float8, 0)
FROM clock CROSS JOIN found f LEFT JOIN rate_budgets b ON b.account = f.account AND b.livemode = f.livemode
ORDER BY f.place NULLS LAST, wait
LIMIT 4 * $2::int + 64
