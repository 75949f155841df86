UPDATE replay_items i SET held_until = NULL, tenant_id = coalesce(i.tenant_id, nullif(u.tenant_id, '')), payment_id = coalesce(u.payment_id, i.payment_id),
    issued_at = CASE WHEN u.result = '' THEN $8::timestamptz ELSE i.issued_at END, result = nullif(u.result, ''), status = nullif(u.status, ''),
    detail = nullif(u.detail, ''), finished_at = CASE WHEN u.result <> '' THEN $8::timestamptz END
FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::text[], $6::text[], $7::text[])
    AS u(replay_id, letter_id, tenant_id, payment_id, result, status, detail)
WHERE i.replay_id = u.replay_id AND i.letter_id = u.letter_id AND i.result IS NULL AND i.issued_at IS NULL
