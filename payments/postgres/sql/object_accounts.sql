-- The accounts in which Stripe's records of payments were found.
SELECT o.tenant_id, o.payment_id, o.stripe_account, o.livemode FROM unnest($1::text[], $2::bytea[]) AS u(tenant_id, id)
JOIN stripe_objects o ON o.tenant_id = u.tenant_id AND o.payment_id = u.id
