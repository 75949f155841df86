-- Notes of rows with several messages which are stored. Those of which all are go with intents_all_sent.sql. Bounds as in intents_sent.sql.
UPDATE outbox_intents o SET sent = (SELECT array_agg(DISTINCT n) FROM unnest(o.sent || s.parts) n)
FROM (SELECT row, array_agg(part) AS parts FROM unnest($2::bigint[], $3::int2[]) AS u(row, part) GROUP BY row) s
WHERE o.lane = $1::int2 AND o.id = s.row AND o.id = ANY($2::bigint[])
    AND o.id >= (SELECT min(id) FROM unnest($2::bigint[]) id) AND o.id <= (SELECT max(id) FROM unnest($2::bigint[]) id)
