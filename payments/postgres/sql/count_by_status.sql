SELECT status, count(*)::int FROM payments WHERE tenant_id = $1 AND kind <> 'batch' GROUP BY status
