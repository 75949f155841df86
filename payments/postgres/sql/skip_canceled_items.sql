-- What somebody held when its replay was canceled, and has not begun in that time.
UPDATE replay_items i SET result = 'skipped', detail = {not begun}, finished_at = coalesce($1::timestamptz, now())
FROM replays r
WHERE i.result IS NULL AND i.issued_at IS NULL AND (i.held_until IS NULL OR i.held_until <= coalesce($1::timestamptz, now()))
    AND r.id = i.replay_id AND r.state = 'canceled'
