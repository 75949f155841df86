-- What nobody has begun. What somebody holds ends as it will, or is skipped when its holding ends.
UPDATE replay_items SET result = 'skipped', detail = {not begun}, finished_at = $2
WHERE replay_id = $1 AND result IS NULL AND issued_at IS NULL AND (held_until IS NULL OR held_until <= $2)
