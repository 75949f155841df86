UPDATE replay_items i SET held_until = NULL FROM unnest($1::text[], $2::text[]) AS u(replay_id, letter_id)
WHERE i.replay_id = u.replay_id AND i.letter_id = u.letter_id AND i.result IS NULL AND i.issued_at IS NULL
