-- Without its ON CONFLICT it is accept_new. As admit_announced.sql where every request is to be published and none asks for a token, which is what comes in over HTTP: tickets and outbox are
-- filled from what was inserted, one row of the outbox for each tenant, and the answer is one row: the store's time, and of those tenants, ids (16
-- bytes each) and numbers in the outbox. While a rewind has found anything at Stripe nothing is inserted, and the first column says so: such a payment may begin as another.
WITH asked AS (
    SELECT * FROM unnest((SELECT $1::text[]), (SELECT $2::bytea[]), (SELECT $3::text[]), (SELECT $4::text[]), (SELECT $5::int2[]), (SELECT $6::bytea[]), (SELECT $7::bigint[]), (SELECT $8::text[]), (SELECT $9::text[]),
        (SELECT $10::bool[]), (SELECT $11::text[]), (SELECT $12::text[]), (SELECT $13::text[]), (SELECT $14::timestamptz[]))
    WITH ORDINALITY AS u(tenant_id, id, idempotency_key, kind, lane, fingerprint, amount, currency, capture_method,
        off_session, customer, payment_method, details, expires_at, ord)
),
clock AS (SELECT coalesce($17::timestamptz, now()) AS now),
rewound AS MATERIALIZED (SELECT EXISTS (SELECT FROM stripe_objects) AS found),
stored AS (
    INSERT INTO payments (tenant_id, id, idempotency_key, kind, lane, status, request_version, fingerprint, fingerprint_version, amount,
        currency, capture_method, off_session, customer, payment_method, details, expires_at, created_at, updated_at)
    SELECT tenant_id, id, idempotency_key, kind, lane, 'received', $15::int2, fingerprint, $16::int2, amount,
        currency, capture_method, off_session, nullif(customer, ''), nullif(payment_method, ''), nullif(details, '')::json, expires_at, clock.now, clock.now
    FROM asked, clock WHERE NOT (SELECT found FROM rewound) ORDER BY ord
    ON CONFLICT DO NOTHING -- by any unique index, as in admit.sql
    RETURNING tenant_id, id, lane, created_at
),
ticket AS (
    INSERT INTO queue (tenant_id, payment_id, lane, due_at) SELECT tenant_id, id, lane, created_at FROM stored
),
announced AS (
    INSERT INTO outbox_intents (lane, tenant_id, payment_id, hold_until)
    SELECT lane, tenant_id, string_agg(id, ''::bytea), min(created_at) + $18::bigint * interval '1 microsecond' FROM stored GROUP BY lane, tenant_id
    RETURNING id, tenant_id, payment_id
)
SELECT (SELECT found FROM rewound), (SELECT now FROM clock), array_agg(tenant_id), array_agg(payment_id), array_agg(id) FROM announced
