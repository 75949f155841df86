-- Keeps what Stripe's listing shows. A PaymentIntent that is known already is seen again.
INSERT INTO stripe_objects AS o (tenant_id, payment_id, stripe_payment_intent, stripe_account, livemode, created_at, found_at)
SELECT u.*, $7::timestamptz FROM unnest($1::text[], $2::bytea[], $3::text[], $4::text[], $5::bool[], $6::timestamptz[]) AS u(tenant_id, payment_id, pi, account, livemode, created_at)
ORDER BY 1, 2, 3
ON CONFLICT (tenant_id, payment_id, stripe_payment_intent) DO UPDATE SET found_at = excluded.found_at
