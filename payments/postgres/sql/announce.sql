-- What is to be published of payments that this transaction has inserted.
INSERT INTO outbox_intents (lane, tenant_id, payment_id, hold_until)
SELECT lane, tenant_id, payment_id, $4::timestamptz
FROM unnest($1::int2[], $2::text[], $3::bytea[]) WITH ORDINALITY AS u(lane, tenant_id, payment_id, ord) ORDER BY ord
RETURNING id, tenant_id, payment_id
