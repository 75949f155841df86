-- The dead letter of a payment: there is one, however often the payment is given up.
WITH d AS (
    INSERT INTO dead_letters AS d (id, tenant_id, idempotency_key, payment_id, reason, message, headers, payload, payload_length,
        payload_sha256, tries, state, subject, first_seen, last_seen)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'open', nullif($12::text, ''), $13, $13)
    ON CONFLICT (tenant_id, payment_id) WHERE stream IS NULL
    DO UPDATE SET state = 'open', reason = excluded.reason, message = excluded.message, tries = excluded.tries, last_seen = excluded.last_seen,
        headers = coalesce(excluded.headers, d.headers), payload = CASE WHEN excluded.reason <> 'card_number_detected' THEN coalesce(excluded.payload, d.payload) END
    RETURNING *
),
o AS (INSERT INTO outbox (kind, dead_letter_id, hold_until) SELECT 'dead_letter', id, $14::timestamptz FROM d RETURNING id)
SELECT {letter}, o.id FROM d, o
