-- The database is right as it is, and further than any copy of its mark.
INSERT INTO installation_mark AS m (marked_at, counter) VALUES (coalesce($1::timestamptz, now()), $2::bigint)
ON CONFLICT (id) DO UPDATE SET marked_at = excluded.marked_at, counter = greatest(m.counter, excluded.counter)
