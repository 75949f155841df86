-- Whether a cancel of a charge is open, or has succeeded; and whether it may be the repeat of one that is forgotten: the charge was there when a rewind was, by
-- clocks that may be five minutes apart (payments.ClockMargin). Of any
-- other charge that has no PaymentIntent no cancel was ever sent, also where one is in doubt, since a worker that had it is gone.
WITH cancel AS MATERIALIZED (
    SELECT EXISTS (
        SELECT FROM (SELECT * FROM operations o WHERE o.tenant_id = $1 AND o.payment_id = $2 AND o.kind = 'cancel' OFFSET 0) o
        CROSS JOIN LATERAL (SELECT x.status FROM payments x WHERE x.tenant_id = o.tenant_id AND x.id = o.id OFFSET 0) x
        WHERE x.status NOT IN ('failed', 'rejected', 'expired', 'canceled')) AS open
)
SELECT open, open AND EXISTS (
    SELECT FROM (SELECT p.created_at FROM payments p WHERE p.tenant_id = $1 AND p.id = $2 OFFSET 0) p, rewinds r
    WHERE r.finished_at IS NULL OR r.finished_at + interval '5 minutes' >= p.created_at)
FROM cancel
