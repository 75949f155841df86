-- +goose Up

-- How far this database has come, counted up once a second while payments are worked on, and copied outside of it: a database that is restored
-- from a backup is behind its copy.
CREATE TABLE installation_mark (
    marked_at  timestamptz NOT NULL,
    counter    bigint NOT NULL,
    id         boolean NOT NULL DEFAULT true,
    floors     json NOT NULL DEFAULT '{}',
    CONSTRAINT installation_mark_pkey PRIMARY KEY (id),
    CONSTRAINT installation_mark_is_one CHECK (id),
    CONSTRAINT installation_mark_counter CHECK (counter >= 0)
);

COMMENT ON TABLE installation_mark IS 'One row, counted up while payments are worked on; absent until the first time';
COMMENT ON COLUMN installation_mark.floors IS 'by stream: up to which of its messages this database had all when it was marked; a rewind reads on from there';

-- PaymentIntents of ours that a rewind found at Stripe, whether or not their payment is there: one that comes later begins as unknown.
CREATE TABLE stripe_objects (
    created_at             timestamptz NOT NULL,
    found_at               timestamptz NOT NULL,
    livemode               boolean NOT NULL,
    payment_id             bytea NOT NULL,
    tenant_id              text COLLATE "C" NOT NULL,
    stripe_account         text NOT NULL,
    stripe_payment_intent  text COLLATE "C" NOT NULL,
    CONSTRAINT stripe_objects_pkey PRIMARY KEY (tenant_id, payment_id, stripe_payment_intent),
    CONSTRAINT stripe_objects_payment_id_length CHECK (octet_length(payment_id) = 16)
);

COMMENT ON TABLE stripe_objects IS 'PaymentIntents of ours that Stripe knew when the database was rewound';
COMMENT ON COLUMN stripe_objects.created_at IS 'when Stripe made it';

-- Jobs that learn again what a restored database has forgotten.
CREATE TABLE rewinds (
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    finished_at  timestamptz,
    since        timestamptz NOT NULL,
    held_until   timestamptz,
    id           bigint GENERATED ALWAYS AS IDENTITY,
    state        text NOT NULL,
    actor        text NOT NULL,
    reason       text,
    progress     json NOT NULL DEFAULT '{}',
    detail       text,
    CONSTRAINT rewinds_pkey PRIMARY KEY (id),
    CONSTRAINT rewinds_state CHECK (state IN ('running', 'completed', 'failed')),
    CONSTRAINT rewinds_finished CHECK ((state = 'running') = (finished_at IS NULL))
);

-- One at a time.
CREATE UNIQUE INDEX rewinds_running_key ON rewinds ((true)) WHERE state = 'running';

COMMENT ON TABLE rewinds IS 'Jobs that read Stripe and the streams again after a restore, run by any server';
COMMENT ON COLUMN rewinds.since IS 'from when on everything is read again';
COMMENT ON COLUMN rewinds.held_until IS 'somebody is running it until then';
