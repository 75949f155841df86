-- Transactions that give tokens and may have read the pauses before the last one was committed.
SELECT DISTINCT l.virtualtransaction FROM pg_locks l
WHERE l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND l.relation = 'pauses'::regclass AND l.granted
    AND l.pid <> pg_backend_pid() AND EXISTS (
        SELECT FROM pg_locks q WHERE q.virtualtransaction = l.virtualtransaction AND q.database = l.database AND q.relation = 'queue'::regclass
            AND q.mode = 'RowExclusiveLock' AND q.granted)
