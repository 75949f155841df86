-- Keeps a PaymentIntent for a payment, for as long as it takes to see whether it is free. What was kept for another one lapses, should whoever did
-- so have died.
INSERT INTO resolved_intents AS g (stripe_payment_intent, tenant_id, payment_id, named_at, provisional_until)
SELECT $2::text, $3::text, $4::bytea, c.now, c.now + $5::bigint * interval '1 microsecond' FROM (SELECT coalesce($1::timestamptz, now()) AS now) c
ON CONFLICT (stripe_payment_intent) DO UPDATE
SET tenant_id = excluded.tenant_id, payment_id = excluded.payment_id, named_at = excluded.named_at, provisional_until = excluded.provisional_until
WHERE g.provisional_until IS NOT NULL
    AND (g.provisional_until <= excluded.named_at OR (g.tenant_id, g.payment_id) = (excluded.tenant_id, excluded.payment_id))
RETURNING provisional_until
