DELETE FROM outbox_intents WHERE lane = $1::int2 AND id = ANY($2::bigint[]) AND 16 * cardinality(sent) = octet_length(payment_id)
