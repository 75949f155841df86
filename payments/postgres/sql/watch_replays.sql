-- Results of issued items whose payments have come to rest, or are dead once more. One that waits for a person has its dead letter open again. Of the
-- items of a replay that are about one payment, the one that was issued first has succeeded, and the payment was settled when the others came to it.
WITH clock AS (SELECT coalesce($1::timestamptz, now()) AS now),
seen AS (
    SELECT i.replay_id, i.letter_id, i.tenant_id, i.payment_id, i.issued_at, p.status, d.state = 'open' AS again,
        CASE WHEN d.state = 'open' THEN 'dead again (' || d.reason || '): ' || d.message ELSE coalesce(p.reason, '') END AS detail
    FROM replay_items i
    JOIN payments p ON p.tenant_id = i.tenant_id AND p.id = i.payment_id
    JOIN dead_letters d ON d.id = i.letter_id
    WHERE i.result IS NULL AND i.issued_at IS NOT NULL AND (p.status NOT IN ('received', 'waiting', 'unknown') OR d.state = 'open')
    ORDER BY i.replay_id, i.letter_id LIMIT 2000 FOR UPDATE OF i SKIP LOCKED
),
ranked AS (
    SELECT s.*, row_number() OVER (PARTITION BY s.replay_id, s.tenant_id, s.payment_id, s.fine ORDER BY s.issued_at, s.letter_id) = 1 AND NOT EXISTS (
        SELECT FROM replay_items o WHERE o.replay_id = s.replay_id AND o.tenant_id = s.tenant_id AND o.payment_id = s.payment_id AND o.result = 'succeeded'
    ) AS first
    FROM (SELECT *, NOT again AND status IN ('succeeded', 'requires_capture', 'requires_action', 'pending') AS fine FROM seen) s
),
ended AS (
    UPDATE replay_items i SET finished_at = clock.now, status = s.status, detail = nullif(s.detail, ''),
        result = CASE WHEN NOT s.fine THEN 'failed_again' WHEN s.first THEN 'succeeded' ELSE 'already_settled' END
    FROM ranked s, clock WHERE i.replay_id = s.replay_id AND i.letter_id = s.letter_id
    RETURNING i.letter_id, s.status
),
opened AS (
    UPDATE dead_letters d SET state = 'open', last_seen = clock.now FROM ended e, clock
    WHERE d.id = e.letter_id AND e.status = 'needs_review' AND d.state = 'replayed' RETURNING d.id
),
told AS (INSERT INTO outbox (kind, dead_letter_id) SELECT 'dead_letter', id FROM opened)
SELECT count(*) FROM ended
