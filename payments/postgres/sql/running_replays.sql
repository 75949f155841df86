-- Replays that have something to issue, those made first first, and how long their rate makes them wait; then whether anything is left to watch: an
-- item without a result, or a replay that has all its results and is not complete yet.
SELECT r.id, greatest(0, extract(epoch FROM coalesce(r.issued_until, $1::timestamptz, now()) - coalesce($1::timestamptz, now())))::float8
FROM (
    SELECT * FROM replays r
    WHERE state = 'running' AND EXISTS (SELECT FROM replay_items i WHERE i.replay_id = r.id AND i.result IS NULL AND i.issued_at IS NULL)
    ORDER BY created_at, id LIMIT 100
) r
UNION ALL
SELECT '', 0 WHERE EXISTS (SELECT FROM replay_items WHERE result IS NULL) OR EXISTS (SELECT FROM replays WHERE state = 'running')
    OR EXISTS (SELECT FROM replays r WHERE r.state = 'paused' AND NOT EXISTS (SELECT FROM replay_items i WHERE i.replay_id = r.id AND i.result IS NULL))
