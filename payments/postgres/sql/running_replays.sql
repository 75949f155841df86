-- Replays that may issue, those made first first, and how long their rate makes them wait; then whether any item has no result yet.
SELECT r.id, greatest(0, extract(epoch FROM coalesce(r.issued_until, $1::timestamptz, now()) - coalesce($1::timestamptz, now())))::float8
FROM (SELECT * FROM replays WHERE state = 'running' ORDER BY created_at, id LIMIT 100) r
UNION ALL
SELECT '', 0 WHERE EXISTS (SELECT FROM replay_items WHERE result IS NULL)
