-- As admit.sql, where the accounts have a rate: as many of the keys that are new get a token as their accounts' budgets have room for, and the rest
-- wait as tickets that are due now. The budgets are locked already (lock_budgets.sql), and are debited for the rows that were really inserted with
-- a token: what is there already spends nothing and leaves the room to the others.
--
-- Interactive requests come first, then bulk, each in the order of their arrival. While interactive tickets wait for tokens no new bulk request
-- gets one; and while tickets of its own lane wait, a new request gets one only of the upper half of the bucket, which they evidently do not come
-- for. Otherwise whoever has a backlog in the stream would overtake what waits in the table, where tenants are served in turn.
WITH input AS (
    SELECT * FROM unnest($1::text[], $2::bytea[], $3::text[], $4::text[], $5::int2[], $6::bytea[], $7::bigint[], $8::text[], $9::text[],
        $10::bool[], $11::text[], $12::text[], $13::text[], $14::timestamptz[], $15::text[], $16::bool[], $17::bytea[], $18::bigint[], $22::int[])
    WITH ORDINALITY AS u(tenant_id, id, idempotency_key, kind, lane, fingerprint, amount, currency, capture_method,
        off_session, customer, payment_method, details, expires_at, stripe_account, livemode, token, lease_us, arrival, ord)
),
clock AS (SELECT coalesce($21::timestamptz, now()) AS now, $23::float8 AS setting),
wanting AS MATERIALIZED (
    SELECT i.ord, i.stripe_account AS account, i.livemode, i.lane,
        row_number() OVER (PARTITION BY i.stripe_account, i.livemode ORDER BY i.lane, i.arrival) AS place
    FROM input i LEFT JOIN payments p ON p.tenant_id = i.tenant_id AND p.id = i.id
    WHERE i.token IS NOT NULL AND p.id IS NULL
),
budget AS MATERIALIZED (
    SELECT b.account, b.livemode, {tokens} AS tokens, {rate} AS rate,
        CASE WHEN {interactive waits} THEN {burst} / 2 ELSE 0 END AS kept_from_interactive,
        CASE WHEN {interactive waits} THEN {burst} WHEN {bulk waits} THEN {burst} / 2 ELSE 0 END AS kept_from_bulk
    FROM (SELECT DISTINCT account, livemode FROM wanting) a JOIN rate_budgets b ON b.account = a.account AND b.livemode = a.livemode, clock
),
granted AS MATERIALIZED (
    SELECT w.ord, w.account, w.livemode FROM wanting w JOIN budget b ON b.account = w.account AND b.livemode = w.livemode
    WHERE w.place <= floor(b.tokens - CASE WHEN w.lane = 1 THEN b.kept_from_interactive ELSE b.kept_from_bulk END + 1e-9)
),
stored AS (
    INSERT INTO payments (tenant_id, id, idempotency_key, kind, lane, status, request_version, fingerprint, fingerprint_version, amount,
        currency, capture_method, off_session, customer, payment_method, details, expires_at, stripe_account, livemode,
        in_doubt, first_submit_at, last_submit_at, created_at, updated_at)
    SELECT i.tenant_id, i.id, i.idempotency_key, i.kind, i.lane, 'received', $19::int2, i.fingerprint, $20::int2, i.amount,
        i.currency, i.capture_method, i.off_session, nullif(i.customer, ''), nullif(i.payment_method, ''), nullif(i.details, '')::json, i.expires_at,
        g.account, coalesce(g.livemode, false), g.ord IS NOT NULL,
        CASE WHEN g.ord IS NOT NULL THEN clock.now END, CASE WHEN g.ord IS NOT NULL THEN clock.now END, clock.now, clock.now
    FROM input i LEFT JOIN granted g ON g.ord = i.ord, clock ORDER BY i.ord
    ON CONFLICT DO NOTHING
    RETURNING tenant_id, id, in_doubt
),
ticket AS (
    INSERT INTO queue (tenant_id, payment_id, lane, due_at, token)
    SELECT i.tenant_id, i.id, i.lane, clock.now + CASE WHEN s.in_doubt THEN i.lease_us ELSE 0 END * interval '1 microsecond',
        CASE WHEN s.in_doubt THEN i.token END
    FROM input i JOIN stored s ON s.tenant_id = i.tenant_id AND s.id = i.id, clock
    RETURNING tenant_id, payment_id, token
),
spent AS (
    SELECT g.account, g.livemode, count(*) AS tokens
    FROM granted g JOIN input i ON i.ord = g.ord JOIN stored s ON s.tenant_id = i.tenant_id AND s.id = i.id GROUP BY g.account, g.livemode
),
waiting AS (
    SELECT w.account, w.livemode, bool_or(w.lane = 1) AS interactive, bool_or(w.lane = 2) AS bulk
    FROM wanting w LEFT JOIN granted g ON g.ord = w.ord WHERE g.ord IS NULL GROUP BY w.account, w.livemode
),
left_over AS (
    SELECT u.account, u.livemode, greatest(0, u.tokens - coalesce(s.tokens, 0)) AS tokens, u.rate,
        coalesce(w.interactive, false) AS interactive, coalesce(w.bulk, false) AS bulk
    FROM budget u LEFT JOIN spent s ON s.account = u.account AND s.livemode = u.livemode
        LEFT JOIN waiting w ON w.account = u.account AND w.livemode = u.livemode
),
debited AS (
    UPDATE rate_budgets b SET tokens = u.tokens, updated_at = {tokens at},
        interactive_waits_until = CASE WHEN u.interactive AND u.tokens < 1 THEN {waits until} ELSE b.interactive_waits_until END,
        bulk_waits_until = CASE WHEN u.bulk AND u.tokens < 1 THEN {waits until} ELSE b.bulk_waits_until END
    FROM left_over u, clock WHERE b.account = u.account AND b.livemode = u.livemode
)
SELECT tenant_id, payment_id, (SELECT now FROM clock), token IS NOT NULL FROM ticket
