SELECT count(*) FROM (SELECT FROM outbox_intents LIMIT 1000000) o
