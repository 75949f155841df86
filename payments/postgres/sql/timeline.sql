SELECT sequence, at, type, status, coalesce(reason, '') FROM payment_events WHERE tenant_id = $1 AND payment_id = $2 ORDER BY sequence
