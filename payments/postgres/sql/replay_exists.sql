SELECT count(*) FROM replays WHERE id = $1
