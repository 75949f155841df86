DELETE FROM resolved_intents WHERE stripe_payment_intent = $1 AND tenant_id = $2 AND payment_id = $3 AND provisional_until = $4
