-- The same message again is the same dead letter. A suspect opens; what an operator has settled stays settled. starts is 0 exactly when this
-- very statement has opened the letter, so that a copy is sent once.
WITH d AS (
    INSERT INTO dead_letters AS d (id, tenant_id, idempotency_key, payment_id, reason, message, stream, stream_created, stream_seq, subject,
        headers, payload, payload_length, payload_sha256, tries, state, first_seen, last_seen)
    VALUES ($1, nullif($2, ''), nullif($3, ''), $4, $5, $6, $7, $8, $9, nullif($10, ''), $11, $12, $13, $14, $15, 'open', $16, $16)
    ON CONFLICT (stream, stream_created, stream_seq)
    DO UPDATE SET last_seen = greatest(d.last_seen, excluded.last_seen), tries = greatest(d.tries, excluded.tries),
        state = CASE WHEN d.state = 'suspect' THEN 'open' ELSE d.state END,
        starts = CASE WHEN d.state = 'suspect' THEN 0 ELSE d.starts + 1 END,
        reason = CASE WHEN d.state = 'suspect' THEN excluded.reason ELSE d.reason END,
        message = CASE WHEN d.state = 'suspect' THEN excluded.message ELSE d.message END,
        tenant_id = coalesce(d.tenant_id, excluded.tenant_id), idempotency_key = coalesce(d.idempotency_key, excluded.idempotency_key),
        payment_id = coalesce(d.payment_id, excluded.payment_id),
        payload = CASE WHEN d.state = 'suspect' THEN excluded.payload ELSE d.payload END
    RETURNING *
),
o AS (
    INSERT INTO outbox (kind, dead_letter_id, hold_until) SELECT 'dead_letter', id, $17 FROM d WHERE starts = 0 RETURNING id
)
SELECT {letter}, coalesce(o.id, 0) FROM d LEFT JOIN o ON true
