INSERT INTO installation (namespace) VALUES ($1) ON CONFLICT DO NOTHING
