-- Breaks resolved_intents' key, so that nothing is written, where a payment is to have a PaymentIntent that a person has given to another one.
INSERT INTO resolved_intents (stripe_payment_intent, tenant_id, payment_id, named_at)
SELECT g.stripe_payment_intent, u.tenant_id, u.id, $5::timestamptz
FROM unnest($1::text[], $2::bytea[], $3::text[], $4::bool[]) AS u(tenant_id, id, stripe_payment_intent, adopts)
JOIN resolved_intents g ON g.stripe_payment_intent = u.stripe_payment_intent
WHERE u.adopts AND (g.tenant_id, g.payment_id) <> (u.tenant_id, u.id) AND g.provisional_until IS NULL
