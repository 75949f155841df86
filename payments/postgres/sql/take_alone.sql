-- Gives one due ticket of a lane that must be worked on alone, the oldest, to the caller. An index leads to such tickets and to no others.
WITH clock AS (SELECT coalesce($5::timestamptz, now()) AS now),
{hold of take_alone},
picked AS MATERIALIZED (
    SELECT q.tenant_id, q.payment_id
    FROM queue q JOIN payments p ON p.tenant_id = q.tenant_id AND p.id = q.payment_id, clock
    WHERE q.lane = $1::int2 AND {alone} AND q.due_at <= clock.now AND NOT {q held}
    ORDER BY q.due_at LIMIT least(1, $2::int)
    FOR UPDATE OF q, p SKIP LOCKED
),
locked AS MATERIALIZED (
    SELECT k.tenant_id, k.payment_id, 1 AS place, {account} AS account, {livemode} AS livemode
    FROM picked k LEFT JOIN tenants t ON t.id = k.tenant_id
),
{give}
{given}
