UPDATE rewinds r SET state = $3, finished_at = c.now, updated_at = c.now, held_until = NULL, detail = nullif($4::text, '')
FROM (SELECT coalesce($1::timestamptz, now()) AS now) c
WHERE r.id = $2 AND r.state = 'running'
RETURNING {rewind}
