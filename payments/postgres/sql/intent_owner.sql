-- Whom a person has given a PaymentIntent to.
SELECT tenant_id, payment_id, provisional_until IS NOT NULL FROM resolved_intents WHERE stripe_payment_intent = $1
