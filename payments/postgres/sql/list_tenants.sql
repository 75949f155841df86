SELECT {tenant} FROM tenants t ORDER BY t.id
