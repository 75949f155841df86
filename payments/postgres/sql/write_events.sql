WITH input AS (
    SELECT * FROM unnest($1::text[], $2::bytea[], $3::bigint[], $4::timestamptz[], $5::text[], $6::text[], $7::text[], $8::text[])
        WITH ORDINALITY AS u(tenant_id, payment_id, sequence, at, type, status, reason, body, ord)
),
entry AS (
    INSERT INTO payment_events (tenant_id, payment_id, sequence, at, type, status, reason, body)
    SELECT tenant_id, payment_id, sequence, at, type, status, nullif(reason, ''), body::json FROM input ORDER BY ord
)
INSERT INTO outbox (kind, tenant_id, payment_id, sequence, hold_until)
SELECT 'event', tenant_id, payment_id, sequence, $9::timestamptz FROM input ORDER BY ord
RETURNING id, tenant_id, payment_id, sequence
