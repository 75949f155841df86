-- A statement of its own after they are locked: whoever made items of them meanwhile is seen.
SELECT d.id, d.state, EXISTS (SELECT FROM replay_items i WHERE i.letter_id = d.id AND i.result IS NULL), coalesce(d.tenant_id, ''), d.payment_id,
    d.stream IS NOT NULL
FROM dead_letters d WHERE d.id = ANY ($1::text[])
