-- Gives tickets that take_due.sql found, as many for each account as its budget has room for, and debits them. Payer 0 stands for tickets that cost
-- nothing. Whatever somebody else has locked or taken by now is passed over, budgets too: many processes come for the same few tokens, and those who
-- waited for each other would find none.
--
-- Bulk gets nothing while interactive tickets wait, who so get the whole rate: somebody stands at a counter for each of them, and a batch that
-- waits a little longer loses nothing. While interactive work uses less than the rate, bulk has all that is left.
WITH clock AS (SELECT coalesce($5::timestamptz, now()) AS now, $16::float8 AS setting),
{hold of take_paced},
candidate AS (
    SELECT * FROM unnest($6::text[], $7::bytea[], $8::text[], $9::bool[], $10::int[]) WITH ORDINALITY
        AS u(tenant_id, payment_id, account, livemode, payer, place)
),
quota AS MATERIALIZED (
    SELECT u.payer, u.most, u.waits, b.account, b.livemode, {tokens} AS tokens, {rate} AS rate, least(u.most, {room}) AS room
    FROM unnest($11::text[], $12::bool[], $13::int[], $14::bool[]) WITH ORDINALITY AS u(account, livemode, most, waits, payer)
    JOIN rate_budgets b ON b.account = u.account AND b.livemode = u.livemode, clock
    FOR UPDATE OF b SKIP LOCKED
),
picked AS MATERIALIZED (
    SELECT l.* FROM (SELECT payer, room FROM quota UNION ALL SELECT 0, $17::int) u, clock, LATERAL (
        SELECT k.tenant_id, k.payment_id, c.place, c.account, c.livemode, c.payer
        FROM (SELECT * FROM candidate w WHERE w.payer = u.payer AND NOT {held} ORDER BY w.place) c, LATERAL ( -- one probe for each, in order: see take.sql
            SELECT q.tenant_id, q.payment_id
            FROM queue q JOIN payments p ON p.tenant_id = q.tenant_id AND p.id = q.payment_id
            WHERE q.tenant_id = c.tenant_id AND q.payment_id = c.payment_id AND q.lane + 0 = $1::int2 AND q.due_at <= clock.now AND {alone} = $18::bool
                AND CASE WHEN p.stripe_account IS NULL THEN c.payer > 0 OR c.account = ''
                    ELSE (c.payer > 0) = (p.stripe_account = c.account AND p.livemode = c.livemode) END
            FOR UPDATE OF q, p SKIP LOCKED) k
        LIMIT u.room) l
),
locked AS MATERIALIZED (SELECT tenant_id, payment_id, place, nullif(account, '') AS account, livemode FROM picked),
{give},
debited AS (
    UPDATE rate_budgets b SET tokens = u.tokens, updated_at = {tokens at},
        interactive_waits_until = CASE WHEN $1::int2 <> 1 THEN b.interactive_waits_until WHEN u.waits THEN {waits until}
            WHEN NOT $15::bool THEN b.interactive_waits_until END,
        bulk_waits_until = CASE WHEN $1::int2 <> 2 THEN b.bulk_waits_until WHEN u.waits THEN {waits until}
            WHEN NOT $15::bool THEN b.bulk_waits_until END
    FROM (
        SELECT q.account, q.livemode, q.rate, q.waits AND q.tokens - coalesce(s.spent, 0) < 1 AS waits, s.spent, greatest(0, q.tokens - coalesce(s.spent, 0)) AS tokens
        FROM quota q LEFT JOIN (SELECT payer, count(*) AS spent FROM picked GROUP BY payer) s ON s.payer = q.payer) u, clock
    WHERE b.account = u.account AND b.livemode = u.livemode AND (u.spent > 0 OR u.waits)
)
{given}
