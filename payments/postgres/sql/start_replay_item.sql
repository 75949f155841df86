UPDATE replay_items i SET starts = least(i.starts + 1, 1000) FROM replays r
WHERE i.replay_id = $1 AND i.letter_id = $2 AND i.held_until = $3 AND i.result IS NULL AND i.issued_at IS NULL AND r.id = i.replay_id AND r.state = 'running'
RETURNING i.starts::int
