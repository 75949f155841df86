UPDATE replays SET state = $2, updated_at = $3, finished_at = CASE WHEN $2 = 'canceled' THEN $3::timestamptz END, issued_until = NULL WHERE id = $1
