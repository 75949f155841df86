SELECT token IS NOT NULL FROM queue WHERE tenant_id = $1 AND payment_id = $2 FOR UPDATE
