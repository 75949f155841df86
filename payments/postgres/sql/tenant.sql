SELECT {tenant} FROM tenants t WHERE t.id = $1
