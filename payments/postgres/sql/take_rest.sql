-- What a Take of the lane has left: whether tickets are due that must be worked on alone, and whether anybody is paused.
WITH clock AS (SELECT coalesce($2::timestamptz, now()) AS now),
{hold of take_rest}
SELECT EXISTS (SELECT FROM queue q, clock WHERE q.lane = $1::int2 AND {alone} AND q.due_at <= clock.now AND NOT {q held}), (SELECT paused FROM holding)
