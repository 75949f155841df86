SELECT a.id, a.at, a.actor, a.action, coalesce(a.reason, ''), coalesce(a.tenant_id, ''), coalesce(a.target, ''), a.filter::text, a.result::text
FROM audit a
WHERE ($1::text IS NULL OR a.tenant_id = $1) AND ($2::text IS NULL OR a.actor = $2) AND ($3::text IS NULL OR a.action = $3)
    AND ($4::text IS NULL OR a.target = $4) AND ($5::timestamptz IS NULL OR a.at >= $5) AND ($6::timestamptz IS NULL OR a.at < $6)
    AND ($7::bigint IS NULL OR a.id < $7)
ORDER BY a.id DESC LIMIT $8
