-- In order, so that two replays that choose the same letters wait for each other in one order. What another replay has meanwhile is passed over, and
-- what was discarded meanwhile is left out; who discards waits for this, and then sees the items.
WITH found AS (
    SELECT u.* FROM unnest($2::text[], $3::text[], $4::text[], $5::text[]) AS u(letter_id, tenant_id, result, detail)
    JOIN dead_letters d ON d.id = u.letter_id AND d.state = 'open'
    ORDER BY u.letter_id FOR SHARE OF d
)
INSERT INTO replay_items (replay_id, letter_id, tenant_id, result, detail, finished_at)
SELECT $1, f.letter_id, nullif(f.tenant_id, ''), nullif(f.result, ''), nullif(f.detail, ''), CASE WHEN f.result <> '' THEN $6::timestamptz END
FROM found f
ORDER BY f.letter_id
ON CONFLICT (letter_id) WHERE result IS NULL DO NOTHING
RETURNING letter_id
