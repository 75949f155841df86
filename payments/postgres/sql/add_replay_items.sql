-- In order, so that two replays that choose the same letters wait for each other in one order. What another replay has meanwhile is passed over.
INSERT INTO replay_items (replay_id, letter_id, tenant_id, result, detail, finished_at)
SELECT $1, u.letter_id, nullif(u.tenant_id, ''), nullif(u.result, ''), nullif(u.detail, ''), CASE WHEN u.result <> '' THEN $6::timestamptz END
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[]) AS u(letter_id, tenant_id, result, detail)
ORDER BY u.letter_id
ON CONFLICT (letter_id) WHERE result IS NULL DO NOTHING
RETURNING letter_id
