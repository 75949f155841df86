-- Stores payments that the database has forgotten, in order. They become in doubt in the same transaction, so that nobody sends anything for them.
WITH input AS (
    SELECT * FROM unnest($1::text[], $2::bytea[], $3::text[], $4::text[], $5::int2[], $6::bytea[], $7::bigint[], $8::text[], $9::text[],
        $10::bool[], $11::text[], $12::text[], $13::text[], $14::timestamptz[])
    WITH ORDINALITY AS u(tenant_id, id, idempotency_key, kind, lane, fingerprint, amount, currency, capture_method,
        off_session, customer, payment_method, details, expires_at, ord)
),
clock AS (SELECT coalesce($17::timestamptz, now()) AS now),
stored AS (
    INSERT INTO payments (tenant_id, id, idempotency_key, kind, lane, status, request_version, fingerprint, fingerprint_version, amount,
        currency, capture_method, off_session, customer, payment_method, details, expires_at, in_doubt, created_at, updated_at)
    SELECT tenant_id, id, idempotency_key, kind, lane, 'received', $15::int2, fingerprint, $16::int2, amount,
        currency, capture_method, off_session, nullif(customer, ''), nullif(payment_method, ''), nullif(details, '')::json, expires_at, true, clock.now, clock.now
    FROM input i, clock WHERE EXISTS (SELECT FROM tenants t WHERE t.id = i.tenant_id) ORDER BY ord
    ON CONFLICT DO NOTHING
    RETURNING tenant_id, id
)
INSERT INTO queue (tenant_id, payment_id, lane, due_at)
SELECT i.tenant_id, i.id, i.lane, clock.now FROM input i, clock WHERE ((i.tenant_id, i.id) IN (SELECT tenant_id, id FROM stored)) IS TRUE
RETURNING tenant_id, payment_id
