SELECT status, count(*)::int FROM payments WHERE tenant_id = $1 AND kind = 'charge' GROUP BY status
