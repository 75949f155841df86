DELETE FROM outbox o USING unnest($1::bigint[]) AS u(id) WHERE o.id = u.id
