-- The store's time, and whether a person has ever named a PaymentIntent: only then is one that is recorded compared with those. It is asked once the
-- tickets are locked, so that whoever names one afterwards waits for this transaction (recorders.sql).
SELECT coalesce($1::timestamptz, now()), EXISTS (SELECT FROM resolved_intents)
