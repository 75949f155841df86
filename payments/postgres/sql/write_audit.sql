INSERT INTO audit (at, tenant_id, actor, action, reason, target, filter, result)
VALUES (coalesce($1::timestamptz, now()), $2, $3, $4, $5, $6, $7::json, $8::json)
