SELECT count(*) FROM (SELECT FROM outbox_intents LIMIT $1::bigint) o
