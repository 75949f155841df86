-- Moves the hold on, only for whoever holds it, and writes down how far the rewind is. It is the first statement of whatever a rewind writes: who has
-- lost the hold writes nothing.
UPDATE rewinds r SET held_until = c.now + $4::bigint * interval '1 microsecond', updated_at = c.now, progress = $5::json, detail = nullif($6::text, '')
FROM (SELECT coalesce($1::timestamptz, now()) AS now) c
WHERE r.id = $2 AND r.state = 'running' AND r.held_until = $3::timestamptz
RETURNING r.held_until, c.now
