-- Whether a cancel of a charge is open, or has succeeded, of which a rewind may know less than its owner: it is in doubt, or its charge was there when a
-- rewind was, so that it may be the repeat of one that is forgotten.
SELECT EXISTS (
    SELECT FROM (SELECT * FROM operations o WHERE o.tenant_id = $1 AND o.payment_id = $2 AND o.kind = 'cancel' OFFSET 0) o
    CROSS JOIN LATERAL (SELECT x.status, x.in_doubt FROM payments x WHERE x.tenant_id = o.tenant_id AND x.id = o.id OFFSET 0) x
    WHERE x.status NOT IN ('failed', 'rejected', 'expired', 'canceled') AND (x.in_doubt OR EXISTS (
        SELECT FROM (SELECT p.created_at FROM payments p WHERE p.tenant_id = $1 AND p.id = $2 OFFSET 0) p, rewinds r
        WHERE r.finished_at IS NULL OR r.finished_at >= p.created_at)))
