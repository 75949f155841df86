-- What the database says of itself, in one row. The timeline is read off the name of the file that is being written, since the control file names
-- a new one only after the next checkpoint.
SELECT (SELECT system_identifier FROM pg_control_system())::text, ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint,
    m.marked_at, coalesce(m.counter, 0), coalesce(m.floors::text, '{}'), coalesce(r.id, 0), coalesce($1::timestamptz, now())
FROM (SELECT) one LEFT JOIN installation_mark m ON true LEFT JOIN rewinds r ON r.state = 'running'
