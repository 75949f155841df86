-- Hands out one lane's intents for a while. The payments are read where they stand; their tickets do not matter.
WITH clock AS (SELECT coalesce($4::timestamptz, now()) AS now),
picked AS (
    SELECT o.id FROM outbox_intents o, clock WHERE o.lane = $1::int2 AND (o.hold_until IS NULL OR o.hold_until <= clock.now)
    ORDER BY o.id LIMIT $2 FOR UPDATE OF o SKIP LOCKED
),
held AS (
    UPDATE outbox_intents o SET hold_until = clock.now + $3::bigint * interval '1 microsecond'
    FROM picked, clock WHERE o.lane = $1::int2 AND o.id = picked.id
    RETURNING o.id, o.tenant_id, o.payment_id
)
SELECT {payment}, NULL::timestamptz, NULL::bytea, 0, h.id
FROM held h JOIN payments p ON p.tenant_id = h.tenant_id AND p.id = h.payment_id
ORDER BY h.id
