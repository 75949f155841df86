-- As admit.sql, where the accounts have a rate: as many of the keys that are new get a token as their accounts' budgets have room for, and the rest
-- wait as tickets that are due now. The budgets are debited for the rows that were really inserted with a token: what is there already spends nothing
-- and leaves the room to the others. The budgets are locked before anything else, in the order in which everybody does: the sort by ord needs all that
-- was decided before the first row is stored.
--
-- Interactive requests come first, then bulk, each in the order of their arrival. While tickets of its lane wait for tokens, or interactive ones, a
-- new request gets none: whoever has a backlog in the stream would overtake what waits in the table, where accounts and tenants are served in turn.
WITH asked AS (
    SELECT * FROM unnest((SELECT $1::text[]), (SELECT $2::bytea[]), (SELECT $3::text[]), (SELECT $4::text[]), (SELECT $5::int2[]), (SELECT $6::bytea[]), (SELECT $7::bigint[]), (SELECT $8::text[]), (SELECT $9::text[]),
        (SELECT $10::bool[]), (SELECT $11::text[]), (SELECT $12::text[]), (SELECT $13::text[]), (SELECT $14::timestamptz[]), (SELECT $15::text[]), (SELECT $16::bool[]), (SELECT $17::bytea[]), (SELECT $18::bigint[]), (SELECT $22::int[]))
    WITH ORDINALITY AS u(tenant_id, id, idempotency_key, kind, lane, fingerprint, amount, currency, capture_method,
        off_session, customer, payment_method, details, expires_at, stripe_account, livemode, token, lease_us, arrival, ord)
),
clock AS (SELECT coalesce($21::timestamptz, now()) AS now, $23::float8 AS setting),
{input paced},
ranked AS MATERIALIZED (
    SELECT i.*, i.token IS NOT NULL AND p.id IS NULL AS wants,
        row_number() OVER (PARTITION BY i.stripe_account, i.livemode, i.token IS NOT NULL AND p.id IS NULL ORDER BY i.lane, i.arrival) AS place
    FROM input i LEFT JOIN payments p ON p.tenant_id = i.tenant_id AND p.id = i.id
),
budget AS MATERIALIZED (
    SELECT b.account, b.livemode, {tokens} AS tokens, {rate} AS rate,
        CASE WHEN {interactive waits} THEN 0 ELSE floor({tokens} + 1e-9) END AS interactive_room,
        CASE WHEN {interactive waits} OR {bulk waits} THEN 0 ELSE floor({tokens} + 1e-9) END AS bulk_room
    FROM (SELECT stripe_account, livemode, min(lane) AS lane FROM ranked WHERE wants GROUP BY stripe_account, livemode) a
    JOIN rate_budgets b ON b.account = a.stripe_account AND b.livemode = a.livemode, clock
    WHERE NOT {interactive waits} AND (a.lane = 1 OR NOT {bulk waits}) -- what gives nothing, and is marked as short already, is not locked at all
    ORDER BY b.account, b.livemode
    FOR UPDATE OF b
),
decided AS MATERIALIZED (
    SELECT r.*, r.wants AND EXISTS (SELECT FROM budget b WHERE b.account = r.stripe_account AND b.livemode = r.livemode
        AND r.place <= CASE WHEN r.lane = 1 THEN b.interactive_room ELSE b.bulk_room END) AS given
    FROM ranked r
),
stored AS (
    INSERT INTO payments (tenant_id, id, idempotency_key, kind, lane, status, request_version, fingerprint, fingerprint_version, amount,
        currency, capture_method, off_session, customer, payment_method, details, expires_at, stripe_account, livemode,
        in_doubt, first_submit_at, last_submit_at, created_at, updated_at)
    SELECT tenant_id, id, idempotency_key, kind, lane, CASE WHEN rewound THEN 'unknown' ELSE 'received' END, $19::int2, fingerprint, $20::int2, amount,
        currency, capture_method, off_session, nullif(customer, ''), nullif(payment_method, ''), nullif(details, '')::json, expires_at,
        CASE WHEN given OR rewound THEN stripe_account END, (given OR rewound) AND livemode, given OR rewound,
        CASE WHEN rewound THEN first_at WHEN given THEN clock.now END, CASE WHEN rewound THEN last_at WHEN given THEN clock.now END, clock.now, clock.now
    FROM decided, clock ORDER BY ord
    ON CONFLICT DO NOTHING -- see admit.sql
    RETURNING tenant_id, id
),
inserted AS MATERIALIZED (
    SELECT * FROM decided d WHERE ((d.tenant_id, d.id) IN (SELECT tenant_id, id FROM stored)) IS TRUE -- not a join: see admit.sql
),
ticket AS (
    INSERT INTO queue (tenant_id, payment_id, lane, due_at, token)
    SELECT tenant_id, id, lane, clock.now + CASE WHEN given THEN lease_us ELSE 0 END * interval '1 microsecond', CASE WHEN given THEN token END
    FROM inserted, clock
),
debited AS (
    UPDATE rate_budgets b SET tokens = greatest(0, u.tokens), updated_at = {tokens at},
        interactive_waits_until = CASE WHEN u.interactive AND u.tokens < 1 THEN {waits until} ELSE b.interactive_waits_until END,
        bulk_waits_until = CASE WHEN u.bulk AND u.tokens < 1 THEN {waits until} ELSE b.bulk_waits_until END
    FROM (
        SELECT b.account, b.livemode, b.tokens - a.spent AS tokens, b.rate, a.interactive, a.bulk
        FROM budget b JOIN (
            SELECT stripe_account, livemode, count(*) FILTER (WHERE given) AS spent,
                bool_or(NOT given AND lane = 1) AS interactive, bool_or(NOT given AND lane = 2) AS bulk
            FROM inserted WHERE wants GROUP BY stripe_account, livemode) a ON a.stripe_account = b.account AND a.livemode = b.livemode) u, clock
    WHERE b.account = u.account AND b.livemode = u.livemode
)
SELECT tenant_id, id, (SELECT now FROM clock), given, rewound, wants AND NOT given FROM inserted
