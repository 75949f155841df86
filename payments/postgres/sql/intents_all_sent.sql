-- Bounds as in intents_sent.sql.
DELETE FROM outbox_intents
WHERE lane = $1::int2 AND id = ANY($2::bigint[]) AND id BETWEEN $3::bigint AND $4::bigint AND 16 * cardinality(sent) = octet_length(payment_id)
