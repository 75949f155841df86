DELETE FROM outbox_intents WHERE lane = $1::int2 AND id = ANY($2::bigint[])
