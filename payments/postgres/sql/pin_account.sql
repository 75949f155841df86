UPDATE tenants SET account = $2, livemode = $3 WHERE id = $1 AND account IS NULL
