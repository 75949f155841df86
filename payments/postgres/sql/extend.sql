-- Moves the end of a lease and writes how many owners in a row count as vanished ($7), only for the token that stands in the ticket; $6: whatever
-- token does.
WITH clock AS (SELECT coalesce($5::timestamptz, now()) AS now)
UPDATE queue q SET due_at = clock.now + $4::bigint * interval '1 microsecond', abandoned = $7::int
FROM clock WHERE q.tenant_id = $1 AND q.payment_id = $2 AND (q.token = $3 OR $6::bool)
RETURNING clock.now
