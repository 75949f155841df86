-- The open dead letters that a filter chooses, those seen first first. Of messages the payload says how much money it is; of payments, their row.
SELECT d.id, coalesce(d.tenant_id, ''), d.reason, d.stream IS NOT NULL, EXISTS (SELECT FROM replay_items i WHERE i.letter_id = d.id AND i.result IS NULL),
    {letter's payment}, coalesce(d.idempotency_key, ''), coalesce(d.subject, ''), b.id IS NOT NULL,
    CASE WHEN d.stream IS NOT NULL AND octet_length(d.payload) <= $12::int THEN d.payload END, coalesce(p.status, ''), coalesce(p.amount, 0),
    coalesce(p.currency, ''), coalesce(p.in_doubt OR p.kind = 'charge' AND p.stripe_payment_intent IS NOT NULL, false)
FROM dead_letters d
LEFT JOIN payments p ON p.tenant_id = d.tenant_id AND p.id = {letter's payment}
LEFT JOIN batches b ON b.tenant_id = d.tenant_id AND b.id = {letter's payment}
WHERE {matches} AND d.state = 'open'
ORDER BY d.first_seen, d.id
