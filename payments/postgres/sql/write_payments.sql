-- amount_refunded is not written: refunds change it while no ticket stands.
UPDATE payments p SET status = u.status, reason = nullif(u.reason, ''), failure = nullif(u.failure, '')::json,
    stripe_payment_intent = nullif(u.stripe_payment_intent, ''), stripe_charge = nullif(u.stripe_charge, ''),
    amount_captured = u.amount_captured, in_doubt = u.in_doubt, first_submit_at = u.first_submit_at, last_submit_at = u.last_submit_at,
    absent_at = u.absent_at, tries = u.tries, rounds = u.rounds, sequence = u.sequence, last_token = u.last_token,
    updated_at = u.updated_at, finalized_at = u.finalized_at
FROM unnest($1::text[], $2::bytea[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bool[],
    $10::timestamptz[], $11::timestamptz[], $12::timestamptz[], $13::int[], $14::int[], $15::bigint[], $16::bytea[], $17::timestamptz[],
    $18::timestamptz[])
    AS u(tenant_id, id, status, reason, failure, stripe_payment_intent, stripe_charge, amount_captured, in_doubt, first_submit_at,
        last_submit_at, absent_at, tries, rounds, sequence, last_token, updated_at, finalized_at)
WHERE p.tenant_id = u.tenant_id AND p.id = u.id
