-- As admit.sql, and leaves in the outbox what is to be published of the rows that it has inserted ($22). First come the rows, with 0, and then the
-- numbers in the outbox.
WITH {stored},
ticket AS (
    INSERT INTO queue (tenant_id, payment_id, lane, due_at, token)
    SELECT i.tenant_id, i.id, i.lane, clock.now + i.lease_us * interval '1 microsecond', i.token
    FROM input i, clock
    WHERE ((i.tenant_id, i.id) IN (SELECT tenant_id, id FROM stored)) IS TRUE -- not a join, which would compare each row with each: 40 ms for 500
    RETURNING tenant_id, payment_id, token IS NOT NULL AS given
),
announced AS (
    INSERT INTO outbox_intents (lane, tenant_id, payment_id, hold_until)
    SELECT i.lane, i.tenant_id, i.id, clock.now + $23::bigint * interval '1 microsecond'
    FROM input i, clock
    WHERE ($22::bool[])[i.ord] AND ((i.tenant_id, i.id) IN (SELECT tenant_id, id FROM stored)) IS TRUE
    ORDER BY i.ord
    RETURNING id, tenant_id, payment_id
)
SELECT tenant_id, payment_id, (SELECT now FROM clock), given,
    (SELECT EXISTS (SELECT FROM stripe_objects)) AND EXISTS (SELECT FROM input i WHERE i.tenant_id = ticket.tenant_id AND i.id = payment_id AND i.rewound),
    0::bigint FROM ticket
UNION ALL
SELECT tenant_id, payment_id, (SELECT now FROM clock), false, false, id FROM announced
