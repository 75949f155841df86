-- Which of some messages have a dead letter that nobody has replayed.
SELECT u.ord
FROM unnest($1::text[], $2::timestamptz[], $3::bigint[]) WITH ORDINALITY AS u(stream, created, seq, ord)
CROSS JOIN LATERAL (SELECT d.state FROM dead_letters d WHERE d.stream = u.stream AND d.stream_created = u.created AND d.stream_seq = u.seq OFFSET 0) d
WHERE d.state IN ('open', 'discarded')
