-- Hands out one lane's intents for a while, at least as many as asked for if there are: a row that has several goes out whole. The payments are read
-- where they stand, one by one by their key (a join would be free to read all payments); their tickets do not matter.
WITH clock AS (SELECT coalesce($4::timestamptz, now()) AS now),
picked AS (
    SELECT o.id, octet_length(o.payment_id) / 16 - coalesce(cardinality(o.sent), 0) AS parts FROM outbox_intents o, clock WHERE o.lane = $1::int2 AND (o.hold_until IS NULL OR o.hold_until <= clock.now)
    ORDER BY o.id LIMIT $2 FOR UPDATE OF o SKIP LOCKED
),
enough AS (SELECT id FROM (SELECT id, sum(parts) OVER (ORDER BY id) - parts AS earlier FROM picked) p WHERE earlier < $2),
held AS (
    UPDATE outbox_intents o SET hold_until = clock.now + $3::bigint * interval '1 microsecond'
    FROM clock WHERE o.lane = $1::int2 AND o.id = ANY (ARRAY(SELECT id FROM enough)) -- as in outbox_pending.sql
        AND o.id BETWEEN (SELECT min(id) FROM enough) AND (SELECT max(id) FROM enough) -- as in intents_sent.sql
    RETURNING o.id, o.tenant_id, o.payment_id, o.sent
),
part AS (
    SELECT h.id, h.tenant_id, substr(h.payment_id, 16 * n + 1, 16) AS payment_id, octet_length(h.payment_id) / 16 AS parts, n
    FROM held h, generate_series(0, octet_length(h.payment_id) / 16 - 1) n WHERE (n = ANY(h.sent)) IS NOT TRUE
)
SELECT {payment}, NULL::timestamptz, NULL::bytea, 0, h.id, h.parts::int8, h.n::int8
FROM part h CROSS JOIN LATERAL (SELECT * FROM payments p WHERE p.tenant_id = h.tenant_id AND p.id = h.payment_id OFFSET 0) p
ORDER BY h.id, h.n
