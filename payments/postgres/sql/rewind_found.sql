-- The next payments that Stripe knows, of those that were found in this rewind.
SELECT DISTINCT o.tenant_id, o.payment_id FROM stripe_objects o
WHERE (o.tenant_id, o.payment_id) > ($1::text, $2::bytea) AND o.found_at >= $4::timestamptz
ORDER BY o.tenant_id, o.payment_id LIMIT $3::int
