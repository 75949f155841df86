UPDATE dead_letters SET state = 'discarded' WHERE tenant_id = $1 AND payment_id = $2 AND stream IS NULL AND state = 'open'
