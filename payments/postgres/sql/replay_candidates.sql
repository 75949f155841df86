-- The open dead letters that a filter chooses, those seen first first. Of messages the payload says how much money it is, in the currency of the payment that
-- it is about; of payments, their row.
SELECT d.id, coalesce(d.tenant_id, ''), d.reason, d.stream IS NOT NULL, EXISTS (SELECT FROM replay_items i WHERE i.letter_id = d.id AND i.result IS NULL),
    {letter's payment}, coalesce(d.idempotency_key, ''), coalesce(d.subject, ''), b.id IS NOT NULL,
    CASE WHEN d.stream IS NOT NULL AND octet_length(d.payload) <= $12::int THEN d.payload END, coalesce(p.status, ''), coalesce(p.amount, 0),
    coalesce(p.currency, ''), coalesce(p.in_doubt OR p.kind = 'charge' AND p.stripe_payment_intent IS NOT NULL, false),
    coalesce(c.currency, ''), coalesce(c.amount, 0), coalesce(c.amount_captured - c.amount_refunded, 0),
    coalesce(p.kind, '')
FROM dead_letters d
LEFT JOIN payments p ON p.tenant_id = d.tenant_id AND p.id = {letter's payment}
LEFT JOIN LATERAL ( -- what a message about a payment that is there says of it; escaped, since a payload may be no text
    SELECT x.currency, x.amount, x.amount_captured, x.amount_refunded FROM payments x
    WHERE x.tenant_id = d.tenant_id AND x.kind = 'charge' AND d.stream IS NOT NULL AND p.id IS NULL AND octet_length(d.payload) <= 65536
        AND x.id = decode(substring(encode(d.payload, 'escape') FROM '"payment_id"\s*:\s*"pay_((?:[0-9a-f]{2}){16})"'), 'hex') OFFSET 0) c ON true
LEFT JOIN batches b ON b.tenant_id = d.tenant_id AND b.id = {letter's payment}
WHERE {matches} AND d.state = 'open'
ORDER BY d.first_seen, d.id
