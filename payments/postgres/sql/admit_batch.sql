-- Stores a batch: the row that guards its key and, if that is new, what else belongs to it. Whoever comes with the same key meanwhile waits at that
-- row, so that nobody meets half of a batch. It is final from the start. A child's key that is there already is passed over: the caller reads what
-- stands there and compares. No row comes back when the key was there; else one for each child that was inserted, or one alone.
WITH clock AS (SELECT coalesce($6::timestamptz, now()) AS now),
batch AS (
    INSERT INTO payments (tenant_id, id, idempotency_key, kind, lane, status, request_version, fingerprint, fingerprint_version, amount,
        currency, capture_method, off_session, created_at, updated_at, finalized_at)
    SELECT $1::text, $2::bytea, $3::text, 'batch', 2, 'succeeded', $7::int2, $4::bytea, $8::int2, 0, '', 'automatic', false,
        clock.now, clock.now, clock.now
    FROM clock
    ON CONFLICT DO NOTHING
    RETURNING tenant_id, id
),
kept AS (
    INSERT INTO batches (tenant_id, id, idempotency_key, parent, count, created_at)
    SELECT b.tenant_id, b.id, $3::text, nullif($5::text, ''), cardinality($11::bytea[]), clock.now FROM batch b, clock
),
input AS (
    SELECT * FROM unnest((SELECT $11::bytea[]), (SELECT $12::text[]), (SELECT $13::text[]), (SELECT $14::bytea[]), (SELECT $15::bigint[]), (SELECT $16::text[]), (SELECT $17::text[]), (SELECT $18::bool[]), (SELECT $19::text[]),
        (SELECT $20::text[]), (SELECT $21::text[]), (SELECT $22::timestamptz[]))
    WITH ORDINALITY AS u(id, idempotency_key, kind, fingerprint, amount, currency, capture_method, off_session, customer, payment_method, details,
        expires_at, ord)
),
stored AS (
    INSERT INTO payments (tenant_id, id, idempotency_key, kind, lane, status, request_version, fingerprint, fingerprint_version, amount,
        currency, capture_method, off_session, customer, payment_method, details, expires_at, stripe_account, livemode,
        in_doubt, first_submit_at, last_submit_at, batch_id, created_at, updated_at)
    SELECT a.tenant_id, id, idempotency_key, kind, 2, CASE WHEN o.first_at IS NULL THEN 'received' ELSE 'unknown' END, $7::int2, fingerprint, $9::int2, amount,
        currency, capture_method, off_session, nullif(customer, ''), nullif(payment_method, ''), nullif(details, '')::json, expires_at,
        o.stripe_account, coalesce(o.livemode, false), o.first_at IS NOT NULL, o.first_at, o.last_at,
        'bat_' || encode($2::bytea, 'hex'), clock.now, clock.now
    FROM (SELECT $1::text AS tenant_id, i.* FROM input i) a LEFT JOIN LATERAL ({at stripe}) o ON true, clock WHERE EXISTS (SELECT FROM batch) ORDER BY ord
    ON CONFLICT DO NOTHING -- see admit.sql
    RETURNING id, status <> 'received' AS rewound
),
inserted AS MATERIALIZED (SELECT id, ord FROM input i WHERE (i.id IN (SELECT id FROM stored)) IS TRUE), -- not a join: see admit.sql
ticket AS (
    INSERT INTO queue (tenant_id, payment_id, lane, due_at) SELECT $1::text, id, 2, clock.now FROM inserted, clock ORDER BY ord
),
announced AS (
    INSERT INTO outbox_intents (lane, tenant_id, payment_id, hold_until)
    SELECT 2, $1::text, id, clock.now + nullif($10::bigint, 0) * interval '1 microsecond' FROM inserted, clock ORDER BY ord
    RETURNING id, payment_id
)
SELECT clock.now, a.payment_id, coalesce(a.id, 0),
    (SELECT EXISTS (SELECT FROM stripe_objects)) AND EXISTS (SELECT FROM stored s WHERE s.id = a.payment_id AND s.rewound)
FROM clock CROSS JOIN batch LEFT JOIN announced a ON true
