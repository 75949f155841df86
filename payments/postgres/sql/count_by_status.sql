SELECT status, count(*)::int FROM payments WHERE tenant_id = $1 GROUP BY status
