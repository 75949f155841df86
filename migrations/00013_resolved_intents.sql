-- +goose Up

-- PaymentIntents that a person has named: one of them pays for one payment. A table of its own, since an index of payments that holds a Stripe id, or
-- whose condition asks for a status, would make every update of every payment dearer; this one has as many rows as people have decided.
CREATE TABLE resolved_intents (
    named_at               timestamptz NOT NULL,
    provisional_until      timestamptz,
    payment_id             bytea NOT NULL,
    tenant_id              text COLLATE "C" NOT NULL,
    stripe_payment_intent  text COLLATE "C" NOT NULL,
    CONSTRAINT resolved_intents_pkey PRIMARY KEY (stripe_payment_intent),
    CONSTRAINT resolved_intents_payment_id_length CHECK (octet_length(payment_id) = 16)
);

COMMENT ON TABLE resolved_intents IS 'The payment that a person has said a PaymentIntent paid for';
COMMENT ON COLUMN resolved_intents.provisional_until IS 'somebody is finding out until then whether it is free; null: the payment has succeeded by it';
