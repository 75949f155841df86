-- Takes the running rewind if nobody holds it.
UPDATE rewinds r SET held_until = c.now + $2::bigint * interval '1 microsecond', updated_at = c.now
FROM (SELECT coalesce($1::timestamptz, now()) AS now) c
WHERE r.state = 'running' AND (r.held_until IS NULL OR r.held_until <= c.now OR r.held_until > c.now + interval '1 hour')
RETURNING {rewind}
