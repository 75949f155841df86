-- Hands out messages for a while. The bodies are read where they stand.
WITH clock AS (SELECT coalesce($3::timestamptz, now()) AS now),
picked AS (
    SELECT o.id FROM outbox o, clock WHERE o.hold_until IS NULL OR o.hold_until <= clock.now
    ORDER BY o.id LIMIT $1 FOR UPDATE OF o SKIP LOCKED
),
held AS (
    UPDATE outbox o SET hold_until = clock.now + $2::bigint * interval '1 microsecond' FROM clock
    WHERE o.id = ANY (ARRAY(SELECT id FROM picked)) -- no join: planned on a small table, and kept, it compared each row with each
    RETURNING o.id, o.kind, o.tenant_id, o.payment_id, o.sequence, o.dead_letter_id
)
SELECT h.id, h.kind, coalesce(h.tenant_id, ''), coalesce(h.dead_letter_id, ''), coalesce(e.type, ''), coalesce(e.body->>'id', ''),
    e.body::text
FROM held h
LEFT JOIN payment_events e ON e.tenant_id = h.tenant_id AND e.payment_id = h.payment_id AND e.sequence = h.sequence
ORDER BY h.id
