UPDATE operations SET stripe_refund = $3 WHERE tenant_id = $1 AND id = $2 AND stripe_refund IS DISTINCT FROM $3
