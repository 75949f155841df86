DELETE FROM dead_letters d
USING unnest($1::text[], $2::timestamptz[], $3::bigint[]) AS u(stream, stream_created, stream_seq)
WHERE d.stream = u.stream AND d.stream_created = u.stream_created AND d.stream_seq = u.stream_seq AND d.state = 'suspect'
