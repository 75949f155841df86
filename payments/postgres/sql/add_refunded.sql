-- What was given back had been taken, whatever was known of that. The charge is locked.
UPDATE payments SET amount_refunded = least(amount, amount_refunded + $3::bigint),
    amount_captured = greatest(amount_captured, least(amount, amount_refunded + $3::bigint)), updated_at = greatest(updated_at, $4::timestamptz)
WHERE tenant_id = $1 AND id = $2
