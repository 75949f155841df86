SELECT coalesce(sum(n), 0)::bigint FROM (SELECT octet_length(payment_id) / 16 - coalesce(cardinality(sent), 0) AS n FROM outbox_intents LIMIT $1::bigint) o
