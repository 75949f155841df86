-- Ends a pause. One that is over already held nothing any more.
DELETE FROM pauses a WHERE coalesce(a.tenant_id, '') = $2::text AND coalesce(a.account, '') = $3::text
RETURNING a.until IS NULL OR a.until > coalesce($1::timestamptz, now())
