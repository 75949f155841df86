SELECT {letter} FROM dead_letters d
WHERE {matches} AND ($12::timestamptz IS NULL OR (d.last_seen, d.id) < ($12, $13::text))
ORDER BY d.last_seen DESC, d.id DESC LIMIT $14
