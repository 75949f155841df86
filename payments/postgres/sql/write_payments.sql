-- amount_refunded is not written: refunds change it, while no ticket of their charge stands, and where one does all the same (a restored database) what
-- was given back counts as taken.
UPDATE payments p SET status = u.status, reason = nullif(u.reason, ''), failure = nullif(u.failure, '')::json,
    stripe_payment_intent = nullif(u.stripe_payment_intent, ''), stripe_charge = nullif(u.stripe_charge, ''),
    amount_captured = greatest(u.amount_captured, p.amount_refunded), in_doubt = u.in_doubt,
    first_submit_at = CASE WHEN u.clear_submit THEN NULL ELSE p.first_submit_at END,
    last_submit_at = CASE WHEN u.clear_submit THEN NULL ELSE p.last_submit_at END,
    absent_at = u.absent_at, tries = u.tries, rounds = u.rounds, sequence = u.sequence, last_token = u.last_token,
    updated_at = u.updated_at, finalized_at = u.finalized_at
FROM unnest($1::text[], $2::bytea[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bool[],
    $10::bool[], $11::timestamptz[], $12::int[], $13::int[], $14::bigint[], $15::bytea[], $16::timestamptz[], $17::timestamptz[])
    AS u(tenant_id, id, status, reason, failure, stripe_payment_intent, stripe_charge, amount_captured, in_doubt, clear_submit,
        absent_at, tries, rounds, sequence, last_token, updated_at, finalized_at)
WHERE p.tenant_id = u.tenant_id AND p.id = u.id
