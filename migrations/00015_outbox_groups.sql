-- +goose Up

-- One row announces all that a tenant had accepted in one flush: a row and an index entry for each were a seventh of what accepting costs PostgreSQL.
-- A process from before this publishes rows of one payment only, and leaves the others to those that know them.
ALTER TABLE outbox_intents
    ADD COLUMN sent smallint[],
    DROP CONSTRAINT outbox_intents_payment_id_length,
    ADD CONSTRAINT outbox_intents_payment_id_length CHECK (octet_length(payment_id) > 0 AND octet_length(payment_id) % 16 = 0);

COMMENT ON COLUMN outbox_intents.payment_id IS 'with tenant_id: the rows of payments that the messages are made of, 16 bytes each';
COMMENT ON COLUMN outbox_intents.sent IS 'which of them are stored in their stream already, counted from 0; null: none';
