INSERT INTO replays (id, state, filter, changes, rate, actor, reason, total, passed_over, amount, created_at, updated_at, finished_at)
VALUES ($1, $2, $3::json, $4::json, $5, $6, nullif($7, ''), $8, $9, $10::json, $11, $11, CASE WHEN $2 = 'completed' THEN $11::timestamptz END)
