-- As extend.sql, and commits the time of the send that follows. The ticket is locked before the payment.
WITH clock AS (SELECT coalesce($5::timestamptz, now()) AS now),
ticket AS (
    UPDATE queue q SET due_at = clock.now + $4::bigint * interval '1 microsecond', abandoned = $7::int
    FROM clock WHERE q.tenant_id = $1 AND q.payment_id = $2 AND (q.token = $3 OR $6::bool)
    RETURNING q.tenant_id, q.payment_id
)
UPDATE payments p SET first_submit_at = coalesce(p.first_submit_at, clock.now), last_submit_at = clock.now, in_doubt = true
FROM ticket t, clock WHERE p.tenant_id = t.tenant_id AND p.id = t.payment_id
RETURNING clock.now
