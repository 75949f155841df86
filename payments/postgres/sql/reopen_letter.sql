-- A dead letter that was replayed in vain: it is the same one, is counted, and is told again.
WITH d AS (
    UPDATE dead_letters SET state = 'open', replays = replays + 1, reason = coalesce($2, reason), message = coalesce($3, message), last_seen = $4,
        payload = CASE WHEN $2 = 'card_number_detected' THEN NULL ELSE payload END, headers = CASE WHEN $2 = 'card_number_detected' THEN NULL ELSE headers END
    WHERE id = $1 AND state = 'open'
    RETURNING *
),
o AS (INSERT INTO outbox (kind, dead_letter_id, hold_until) SELECT 'dead_letter', id, $5::timestamptz FROM d RETURNING id)
SELECT {letter}, o.id FROM d, o
