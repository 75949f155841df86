-- +goose Up

-- Which charge a capture, cancel or refund is about, and its place among all that was asked of that charge. Everything else of it, its status included,
-- stands in its row of payments. A program that does not know this table goes on without it.
CREATE TABLE operations (
    number         bigint NOT NULL,
    payment_id     bytea NOT NULL,
    id             bytea NOT NULL,
    tenant_id      text COLLATE "C" NOT NULL,
    kind           text NOT NULL,
    stripe_refund  text,
    CONSTRAINT operations_pkey PRIMARY KEY (tenant_id, payment_id, number),
    CONSTRAINT operations_tenant_id_id_key UNIQUE (tenant_id, id),
    CONSTRAINT operations_payment_id_length CHECK (octet_length(payment_id) = 16),
    CONSTRAINT operations_id_length CHECK (octet_length(id) = 16),
    CONSTRAINT operations_number CHECK (number >= 1),
    CONSTRAINT operations_kind CHECK (kind IN ('capture', 'cancel', 'refund'))
) WITH (fillfactor = 80);

COMMENT ON TABLE operations IS 'Captures, cancels and refunds by the charge that they are about; each has its row in payments';
COMMENT ON COLUMN operations.payment_id IS 'the charge';
COMMENT ON COLUMN operations.id IS 'of its own row in payments';
COMMENT ON COLUMN operations.number IS 'its place among those of its charge, from 1, in the order in which they were accepted and in which they run';
COMMENT ON COLUMN operations.stripe_refund IS 're_…, once Stripe has named it';

COMMENT ON COLUMN payments.kind IS 'what is asked for; captures, cancels and refunds name their charge in operations';
COMMENT ON COLUMN payments.amount IS 'minor units as Stripe counts them; of a capture or refund what was left when it was accepted, unless a part was asked for; 0 of a cancel';
COMMENT ON COLUMN payments.details IS 'members of the intent that few requests have: description, statement_descriptor_suffix, receipt_email, return_url, metadata, payment_id, all, reason; null when there are none';
COMMENT ON COLUMN payments.amount_refunded IS 'minor units given back by refunds that succeeded';
COMMENT ON TABLE stripe_objects IS 'PaymentIntents and refunds of ours that Stripe knew when the database was rewound';
COMMENT ON COLUMN stripe_objects.stripe_payment_intent IS 'pi_…, or re_… of a refund';
