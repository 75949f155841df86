-- Waits for everybody who is storing payments at the moment, and lets nobody else begin meanwhile: what comes later sees what Stripe knows.
LOCK TABLE payments IN SHARE MODE
