-- Gives a PaymentIntent that is kept for a payment to it, if it is kept still, and for long enough that this can be committed.
UPDATE resolved_intents SET provisional_until = NULL
WHERE stripe_payment_intent = $2 AND tenant_id = $3 AND payment_id = $4 AND provisional_until = $5 AND provisional_until > coalesce($1::timestamptz, now()) + interval '1 min'
