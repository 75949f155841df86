-- A replay is complete when every item has its result; the audit tells what it came to.
WITH done AS (
    UPDATE replays r SET state = 'completed', finished_at = coalesce($1::timestamptz, now()), updated_at = coalesce($1::timestamptz, now())
    WHERE r.state IN ('running', 'paused') AND NOT EXISTS (SELECT FROM replay_items i WHERE i.replay_id = r.id AND i.result IS NULL)
    RETURNING r.*
)
INSERT INTO audit (at, tenant_id, actor, action, reason, target, filter, result)
SELECT r.finished_at, r.filter->>'tenant_id', r.actor, 'dlq replay completed', r.reason, r.id, r.filter,
    json_build_object('succeeded', c.succeeded, 'already_settled', c.already_settled, 'failed_again', c.failed_again, 'conflict', c.conflict, 'skipped', c.skipped)
FROM done r, {replay counts}
