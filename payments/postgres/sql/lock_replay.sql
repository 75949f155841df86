SELECT state, coalesce($2::timestamptz, now()) FROM replays WHERE id = $1 FOR UPDATE
