-- Holds items of a replay for a while, as many as its rate allows since the last ones, of at most a second's worth. Who else is at the same replay
-- at this moment is passed over.
WITH clock AS (SELECT coalesce($4::timestamptz, now()) AS now),
job AS (
    SELECT r.id, r.rate, greatest(coalesce(r.issued_until, clock.now), clock.now - interval '1 s') AS start
    FROM replays r, clock WHERE r.id = $1 AND r.state = 'running' FOR UPDATE OF r SKIP LOCKED
),
room AS (
    SELECT job.*, CASE WHEN rate = 0 THEN $2::int WHEN start > clock.now THEN 0
        ELSE least($2::float8, floor(extract(epoch FROM clock.now - start)::float8 * rate) + 1)::int END AS n
    FROM job, clock
),
picked AS (
    SELECT i.replay_id, i.letter_id FROM replay_items i, clock
    WHERE i.replay_id = $1 AND i.result IS NULL AND i.issued_at IS NULL AND (i.held_until IS NULL OR i.held_until <= clock.now)
    ORDER BY i.letter_id LIMIT coalesce((SELECT n FROM room), 0) FOR UPDATE OF i SKIP LOCKED
),
held AS (
    UPDATE replay_items i SET held_until = clock.now + $3::bigint * interval '1 microsecond' FROM picked, clock
    WHERE i.replay_id = picked.replay_id AND i.letter_id = picked.letter_id
    RETURNING i.letter_id, i.starts, i.held_until
),
paced AS (
    UPDATE replays r SET issued_until = CASE WHEN room.rate > 0 THEN room.start + make_interval(secs => (SELECT count(*) FROM held) / room.rate) END
    FROM room WHERE r.id = room.id AND (SELECT count(*) FROM held) > 0
    RETURNING r.changes
)
SELECT {letter}, h.starts::int, h.held_until, coalesce(paced.changes::text, '')
FROM held h JOIN dead_letters d ON d.id = h.letter_id, paced
ORDER BY d.first_seen, d.id
