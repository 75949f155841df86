-- Another payment that a PaymentIntent is already of, by what is recorded or by what a rewind has read at Stripe. It reads the whole table, as no index
-- holds a Stripe id.
(SELECT p.tenant_id, p.id FROM payments p WHERE p.stripe_payment_intent = $1 AND p.kind = 'charge' AND (p.tenant_id, p.id) <> ($2::text, $3::bytea) LIMIT 1)
UNION ALL
(SELECT o.tenant_id, o.payment_id FROM stripe_objects o WHERE o.stripe_payment_intent = $1 AND (o.tenant_id, o.payment_id) <> ($2::text, $3::bytea) LIMIT 1)
LIMIT 1
