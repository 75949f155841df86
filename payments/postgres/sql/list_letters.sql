SELECT {letter} FROM dead_letters d
WHERE ($1::text IS NULL OR d.tenant_id = $1) AND ($2::text IS NULL OR d.reason = $2) AND ($3::text IS NULL OR d.state = $3)
    AND ($3::text IS NOT NULL OR d.state <> 'suspect')
    AND ($4::text IS NULL OR d.idempotency_key = $4) AND ($5::bytea IS NULL OR d.payment_id = $5)
    AND ($6::timestamptz IS NULL OR d.last_seen >= $6) AND ($7::timestamptz IS NULL OR d.last_seen < $7)
    AND ($8::timestamptz IS NULL OR (d.last_seen, d.id) < ($8, $9::text))
    AND ($11::text IS NULL OR d.id = $11)
    AND ($12::text IS NULL OR strpos(d.message, $12) > 0 OR position(convert_to($12, 'UTF8') IN d.payload) > 0)
ORDER BY d.last_seen DESC, d.id DESC LIMIT $10
