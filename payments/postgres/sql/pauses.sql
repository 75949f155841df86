-- The pauses that hold somebody now, the oldest first.
SELECT a.id, coalesce(a.tenant_id, ''), coalesce(a.account, ''), a.reason, a.actor, a.since, a.until
FROM pauses a WHERE a.until IS NULL OR a.until > coalesce($1::timestamptz, now()) ORDER BY a.since, a.id
