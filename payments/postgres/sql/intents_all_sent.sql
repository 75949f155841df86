-- Bounds as in intents_sent.sql.
DELETE FROM outbox_intents
WHERE lane = $1::int2 AND id = ANY($2::bigint[]) AND id >= (SELECT min(id) FROM unnest($2::bigint[]) id) AND id <= (SELECT max(id) FROM unnest($2::bigint[]) id)
    AND 16 * cardinality(sent) = octet_length(payment_id)
