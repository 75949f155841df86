-- Those of the given transactions ($1; null: of all) that have locked tickets, or begun to, in order to record an outcome or to see that there is none.
-- Whoever comes later sees what has been named. The table is not locked for that: everybody would wait behind whoever waits for one that hangs.
SELECT coalesce(array_agg(DISTINCT l.virtualtransaction), '{}')
FROM pg_locks l
WHERE l.locktype = 'relation' AND l.relation = 'queue'::regclass AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    AND l.mode IN ('RowShareLock', 'RowExclusiveLock') AND ($1::text[] IS NULL OR l.virtualtransaction = ANY ($1::text[]))
