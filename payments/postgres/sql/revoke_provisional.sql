-- Takes from whoever is naming a PaymentIntent at this moment, or has died while doing so, what Stripe shows for another payment than his: Stripe's word
-- stands above a person's until that is recorded. It waits for one that is just being recorded, and refuse_taken.sql sees it then.
DELETE FROM resolved_intents g
USING unnest($1::text[], $2::bytea[], $3::text[], $4::bool[]) AS u(tenant_id, id, stripe_payment_intent, adopts)
WHERE u.adopts AND g.stripe_payment_intent = u.stripe_payment_intent AND (g.tenant_id, g.payment_id) <> (u.tenant_id, u.id) AND g.provisional_until IS NOT NULL
