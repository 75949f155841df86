INSERT INTO dead_letters AS d (id, tenant_id, idempotency_key, payment_id, reason, message, stream, stream_created, stream_seq, subject,
    headers, payload, payload_length, payload_sha256, tries, starts, state, first_seen, last_seen)
VALUES ($1, nullif($2, ''), nullif($3, ''), $4, $5, $6, $7, $8, $9, nullif($10, ''), $11, $12, $13, $14, $15, 1, 'suspect',
    coalesce($16::timestamptz, now()), coalesce($16::timestamptz, now()))
ON CONFLICT (stream, stream_created, stream_seq)
DO UPDATE SET starts = d.starts + 1, tries = greatest(d.tries, excluded.tries), last_seen = excluded.last_seen
RETURNING CASE WHEN state = 'suspect' THEN starts ELSE greatest(starts, $17::int + 1) END
