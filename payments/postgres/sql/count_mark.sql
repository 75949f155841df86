-- Counts the mark up, at most once a second whoever comes, or sets it for the first time. $2 is the least that it must stand at: one that has
-- fallen behind meanwhile is not counted. A time that lies ahead was written by a clock that was wrong, and stops nobody.
INSERT INTO installation_mark AS m (marked_at, counter, floors)
SELECT coalesce($1::timestamptz, now()), 1, $3::json WHERE $2::bigint = 0 OR EXISTS (SELECT FROM installation_mark)
ON CONFLICT (id) DO UPDATE SET marked_at = excluded.marked_at, counter = m.counter + 1, floors = excluded.floors
WHERE m.counter >= $2::bigint AND m.marked_at NOT BETWEEN excluded.marked_at - interval '0.95 s' AND excluded.marked_at + interval '5 s'
RETURNING counter, marked_at
