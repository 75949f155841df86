-- Stores a follow-up with its ticket, its place and, if it is to be published, what says so; nothing of all that when its key is there already or is
-- about to be. The caller has locked the charge, whose newest number is $4 - 1. What a rewind has found at Stripe begins as one that was sent.
WITH clock AS (SELECT coalesce($1::timestamptz, now()) AS now),
stored AS (
    INSERT INTO payments (tenant_id, id, idempotency_key, kind, lane, status, request_version, fingerprint, fingerprint_version, amount, currency,
        capture_method, off_session, details, stripe_payment_intent, stripe_account, livemode, in_doubt, first_submit_at, last_submit_at, last_token,
        created_at, updated_at)
    SELECT a.tenant_id, a.id, $6::text, $7::text, $8::int2, CASE WHEN o.first_at IS NULL THEN 'received' ELSE 'unknown' END, $9::int2, $10::bytea, $11::int2,
        $12::bigint, $13::text, 'automatic', false, nullif($14::text, '')::json, nullif($15::text, ''), nullif($16::text, ''), $17::bool,
        $18::bool OR o.first_at IS NOT NULL, o.first_at, o.last_at, $19::bytea, clock.now, clock.now
    FROM (SELECT $2::text AS tenant_id, $3::bytea AS id) a LEFT JOIN LATERAL ({at stripe}) o ON true, clock
    ON CONFLICT DO NOTHING -- by any unique index, as in admit.sql
    RETURNING tenant_id, id, lane, created_at
),
ticket AS (
    INSERT INTO queue (tenant_id, payment_id, lane, due_at) SELECT tenant_id, id, lane, created_at FROM stored
),
placed AS (
    INSERT INTO operations (tenant_id, payment_id, number, id, kind) SELECT tenant_id, $5::bytea, $4::bigint, id, $7::text FROM stored
),
announced AS (
    INSERT INTO outbox_intents (lane, tenant_id, payment_id, hold_until)
    SELECT lane, tenant_id, id, created_at + $21::bigint * interval '1 microsecond' FROM stored WHERE $20::bool
    RETURNING id
)
SELECT coalesce((SELECT id FROM announced), 0) FROM stored
