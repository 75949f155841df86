-- +goose Up

-- What is kept of a batch beside its children. Its own row in payments, of kind batch, guards its key; both are written by the one transaction that
-- writes the children. A row is changed once, when its completion is told.
CREATE TABLE batches (
    created_at       timestamptz NOT NULL,
    completed_at     timestamptz,
    count            smallint NOT NULL,
    id               bytea NOT NULL,
    tenant_id        text COLLATE "C" NOT NULL,
    idempotency_key  text COLLATE "C" NOT NULL,
    parent           text COLLATE "C",
    CONSTRAINT batches_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT batches_id_length CHECK (octet_length(id) = 16),
    CONSTRAINT batches_idempotency_key CHECK (octet_length(idempotency_key) BETWEEN 1 AND 240),
    CONSTRAINT batches_parent CHECK (octet_length(parent) BETWEEN 1 AND 255),
    CONSTRAINT batches_count CHECK (count BETWEEN 1 AND 100)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);

-- Lists, oldest first: all of a tenant's, and those of one run. Their conditions always hold for what looks through them; they keep the indexes out
-- of the plans of look-ups by id.
CREATE INDEX batches_tenant_id_created_at_idx ON batches (tenant_id, created_at, id) WHERE created_at > '-infinity';
CREATE INDEX batches_parent_idx ON batches (tenant_id, parent, created_at, id) WHERE parent IS NOT NULL;

-- Those whose completion is still to be told: few, however many batches there are.
CREATE INDEX batches_open_idx ON batches (tenant_id, id) WHERE completed_at IS NULL;

COMMENT ON TABLE batches IS 'One row for every batch; its children are the payments {idempotency_key}::0 to {idempotency_key}::{count - 1}';
COMMENT ON COLUMN batches.id IS 'as of its row in payments: first 16 bytes of SHA-256(tenant_id 0x00 idempotency_key)';
COMMENT ON COLUMN batches.parent IS 'the run that it is a part of; null: none';
COMMENT ON COLUMN batches.count IS 'how many children it has';
COMMENT ON COLUMN batches.completed_at IS 'when it was told that every child is final; null: not yet. Set once, with the event';

-- Copies of intents that were accepted by other ways than their stream, still to be published on it. Each lane has a relay of its own, so that a
-- stream that is full holds up nobody else; the bodies are made of the payments' rows.
CREATE TABLE outbox_intents (
    id          bigint GENERATED ALWAYS AS IDENTITY,
    hold_until  timestamptz,
    lane        smallint NOT NULL,
    payment_id  bytea NOT NULL,
    tenant_id   text COLLATE "C" NOT NULL,
    CONSTRAINT outbox_intents_pkey PRIMARY KEY (lane, id),
    CONSTRAINT outbox_intents_lane CHECK (lane IN (1, 2)),
    CONSTRAINT outbox_intents_payment_id_length CHECK (octet_length(payment_id) = 16)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.0, autovacuum_analyze_threshold = 5000);

COMMENT ON TABLE outbox_intents IS 'What is still to be published of intents; a row is deleted once its message is stored in its lane''s stream';
COMMENT ON COLUMN outbox_intents.lane IS '1 interactive, 2 bulk: whose stream';
COMMENT ON COLUMN outbox_intents.hold_until IS 'somebody is publishing it until then';
COMMENT ON COLUMN outbox_intents.payment_id IS 'with tenant_id: the row of payments that the message is made of';
