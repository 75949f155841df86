-- The next payments that wait for their customer or for a capture, among a stretch of all payments; and where the stretch ends, in a row of its own.
WITH stretch AS MATERIALIZED (
    SELECT p.tenant_id, p.id, p.status, p.stripe_payment_intent FROM payments p
    WHERE (p.tenant_id, p.id) > ($1::text, $2::bytea) ORDER BY p.tenant_id, p.id LIMIT $3::int
)
SELECT tenant_id, id, false AS ends FROM stretch WHERE status IN ('requires_action', 'requires_capture') AND stripe_payment_intent IS NOT NULL
UNION ALL
(SELECT tenant_id, id, true FROM stretch ORDER BY tenant_id DESC, id DESC LIMIT 1)
