SELECT {replay} FROM replays r, {replay counts}
WHERE ($1::timestamptz IS NULL OR (r.created_at, r.id) < ($1, $2::text))
ORDER BY r.created_at DESC, r.id DESC LIMIT $3
