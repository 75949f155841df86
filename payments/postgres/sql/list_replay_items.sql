SELECT i.replay_id, i.letter_id, coalesce(i.tenant_id, ''), i.payment_id, coalesce(i.result, ''), coalesce(i.status, ''), coalesce(i.detail, ''), i.finished_at,
    coalesce((SELECT k.kind FROM payments k WHERE k.tenant_id = i.tenant_id AND k.id = i.payment_id), '')
FROM replay_items i
WHERE i.replay_id = $1 AND ($2::text IS NULL OR i.result = $2 OR $2 = 'unfinished' AND i.result IS NULL) AND ($3::text IS NULL OR i.letter_id > $3)
ORDER BY i.letter_id LIMIT $4
