SELECT FROM dead_letters WHERE id = ANY ($1::text[]) ORDER BY id FOR UPDATE
