-- +goose Up

-- One row, written by the first process that serves, and never changed: Stripe's idempotency keys and the metadata that look-ups search for are
-- made with the namespace, so that under another one every payment in doubt would be looked for in vain and charged again.
CREATE TABLE installation (
    created_at  timestamptz NOT NULL DEFAULT now(),
    id          boolean NOT NULL DEFAULT true,
    namespace   text COLLATE "C" NOT NULL,
    CONSTRAINT installation_pkey PRIMARY KEY (id),
    CONSTRAINT installation_is_one CHECK (id)
);

COMMENT ON TABLE installation IS 'What this database must be used with, for ever';
COMMENT ON COLUMN installation.namespace IS 'ONCEPAY_NAMESPACE: part of every key that Stripe sees';
