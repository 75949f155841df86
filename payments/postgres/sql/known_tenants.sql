SELECT id FROM tenants WHERE id = ANY($1::text[])
