-- What Stripe calls the refunds of follow-ups, where it has named them.
SELECT o.tenant_id, o.id, o.number, coalesce(o.stripe_refund, '')
FROM unnest($1::text[], $2::bytea[]) AS u(tenant_id, id)
CROSS JOIN LATERAL (SELECT * FROM operations o WHERE o.tenant_id = u.tenant_id AND o.id = u.id OFFSET 0) o
