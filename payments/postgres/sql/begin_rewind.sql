-- One at a time: no row comes back while another is running.
INSERT INTO rewinds AS r (created_at, updated_at, since, state, actor, reason, progress)
SELECT c.now, c.now, $2::timestamptz, 'running', $3, $4, $5::json FROM (SELECT coalesce($1::timestamptz, now()) AS now) c
ON CONFLICT DO NOTHING
RETURNING {rewind}
