-- Gives due tickets of a lane to the caller: tenants in turn, beginning after the tenant that was served last, and each tenant's oldest first.
-- Tenants are found by one index probe each, and no more of them than are needed (a recursive query is read as far as the LIMIT asks).
-- Candidates are chosen without locks, more than are wanted, since others may be choosing too; only those that are given out are locked, and
-- what somebody else has locked is passed over. Tickets are locked before payments.
-- The account of a payment that is pinned to none is its tenant's own, as soon as that is known, or the installation's. Tenants that are held back
-- are passed over, and tickets that must be worked on alone.
WITH RECURSIVE clock AS (SELECT coalesce($5::timestamptz, now()) AS now),
{hold of take},
ahead AS (
    (SELECT q.tenant_id FROM queue q WHERE q.lane = $1::int2 AND q.tenant_id > $6::text AND NOT (SELECT everything FROM holding)
        ORDER BY q.tenant_id LIMIT 1)
    UNION ALL
    SELECT (SELECT q.tenant_id FROM queue q WHERE q.lane = $1::int2 AND q.tenant_id > t.tenant_id ORDER BY q.tenant_id LIMIT 1)
    FROM ahead t WHERE t.tenant_id IS NOT NULL
),
behind AS (
    (SELECT q.tenant_id FROM queue q WHERE q.lane = $1::int2 AND q.tenant_id <= $6::text AND NOT (SELECT everything FROM holding)
        ORDER BY q.tenant_id LIMIT 1)
    UNION ALL
    SELECT (SELECT q.tenant_id FROM queue q WHERE q.lane = $1::int2 AND q.tenant_id > t.tenant_id AND q.tenant_id <= $6::text
        ORDER BY q.tenant_id LIMIT 1)
    FROM behind t WHERE t.tenant_id IS NOT NULL
),
tenant AS MATERIALIZED (
    SELECT w.tenant_id, row_number() OVER () AS turn FROM (
        SELECT t.tenant_id FROM (SELECT tenant_id FROM ahead UNION ALL SELECT tenant_id FROM behind) t
        WHERE t.tenant_id IS NOT NULL
            AND (SELECT q.due_at FROM queue q WHERE q.lane = $1::int2 AND q.tenant_id = t.tenant_id ORDER BY q.due_at LIMIT 1)
                <= (SELECT now FROM clock)
            AND NOT {t held}
        LIMIT 4 * $2::int) w
),
candidate AS (
    SELECT d.tenant_id, d.payment_id, t.turn, row_number() OVER (PARTITION BY t.turn ORDER BY d.due_at) AS round
    FROM tenant t, clock, LATERAL (
        SELECT q.tenant_id, q.payment_id, q.due_at FROM queue q
        WHERE q.lane = $1::int2 AND q.tenant_id = t.tenant_id AND q.due_at <= clock.now AND NOT {alone}
        ORDER BY q.due_at LIMIT (SELECT least(4 * $2::int, 1 + 16 * $2::int / count(*)) FROM tenant)) d
),
chosen AS MATERIALIZED (
    SELECT tenant_id, payment_id, row_number() OVER (ORDER BY round, turn) AS place FROM candidate ORDER BY round, turn LIMIT 4 * $2::int
),
picked AS (
    SELECT l.tenant_id, l.payment_id, c.place
    FROM (SELECT * FROM chosen ORDER BY place) c, clock, LATERAL (
        SELECT q.tenant_id, q.payment_id
        FROM queue q JOIN payments p ON p.tenant_id = q.tenant_id AND p.id = q.payment_id
        WHERE q.tenant_id = c.tenant_id AND q.payment_id = c.payment_id
            AND q.lane + 0 = $1::int2 AND q.due_at <= clock.now AND NOT {alone} -- asked again of the locked row; + 0 leaves the primary key as the only way to it
        FOR UPDATE OF q, p SKIP LOCKED -- the payment too: to wait for one that somebody keeps locked would hold up the lane
    ) l -- one probe for each, in order, until there are enough: as a join it was planned, on a table that looked small, as each with each
    LIMIT $2::int
),
locked AS MATERIALIZED (
    SELECT k.tenant_id, k.payment_id, k.place, {account} AS account, {livemode} AS livemode
    FROM picked k LEFT JOIN tenants t ON t.id = k.tenant_id
),
{give}
{given}
