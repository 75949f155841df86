-- Pauses whoever the scope names; pausing again changes what stands there. No row comes back when the pause would be over already.
INSERT INTO pauses AS a (since, until, tenant_id, account, reason, actor)
SELECT clock.now, $2::timestamptz, $3::text, $4::text, $5::text, $6::text FROM (SELECT coalesce($1::timestamptz, now()) AS now) clock
WHERE $2::timestamptz IS NULL OR $2::timestamptz > clock.now
ON CONFLICT (coalesce(tenant_id, ''), coalesce(account, '')) DO UPDATE SET until = excluded.until, reason = excluded.reason, actor = excluded.actor,
    since = CASE WHEN a.until <= excluded.since THEN excluded.since ELSE a.since END
RETURNING id, since
