-- Gives a PaymentIntent that a person has named for another payment back to the one that Stripe says it is of.
UPDATE resolved_intents SET tenant_id = $2, payment_id = $3, provisional_until = NULL WHERE stripe_payment_intent = $1
