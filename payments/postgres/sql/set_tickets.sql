-- Nobody's tickets, due at the given times, whether or not there were any.
INSERT INTO queue (tenant_id, payment_id, lane, due_at)
SELECT * FROM unnest($1::text[], $2::bytea[], $3::int2[], $4::timestamptz[])
ON CONFLICT (tenant_id, payment_id) DO UPDATE SET due_at = excluded.due_at, token = NULL, abandoned = 0
