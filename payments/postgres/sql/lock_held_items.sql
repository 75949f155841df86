SELECT i.replay_id, i.letter_id, r.state
FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS u(replay_id, letter_id, held_until)
JOIN replay_items i ON i.replay_id = u.replay_id AND i.letter_id = u.letter_id
JOIN replays r ON r.id = i.replay_id
WHERE i.held_until = u.held_until AND i.result IS NULL AND i.issued_at IS NULL
ORDER BY i.letter_id FOR UPDATE OF i
