-- +goose Up

-- Every keyed request. The unique key is the only guard against a second charge. Columns are ordered to leave no padding: what is wide and
-- fixed first. No index holds a column that an update changes, and fillfactor 40 leaves room for the second version of every row on its page,
-- also when one statement updates all of them: it is a third longer, by Stripe's ids. HOT: 83% at 50, 96% at 45, all at 42, with the same heap.
CREATE TABLE payments (
    created_at             timestamptz NOT NULL,
    updated_at             timestamptz NOT NULL,
    finalized_at           timestamptz,
    first_submit_at        timestamptz,
    last_submit_at         timestamptz,
    absent_at              timestamptz,
    expires_at             timestamptz,
    amount                 bigint NOT NULL,
    amount_captured        bigint NOT NULL DEFAULT 0,
    amount_refunded        bigint NOT NULL DEFAULT 0,
    sequence               bigint NOT NULL DEFAULT 0,
    tries                  integer NOT NULL DEFAULT 0,
    rounds                 integer NOT NULL DEFAULT 0,
    lane                   smallint NOT NULL,
    request_version        smallint NOT NULL,
    fingerprint_version    smallint NOT NULL,
    in_doubt               boolean NOT NULL DEFAULT false,
    livemode               boolean NOT NULL DEFAULT false,
    off_session            boolean NOT NULL,
    id                     bytea NOT NULL,
    fingerprint            bytea NOT NULL,
    last_token             bytea,
    tenant_id              text COLLATE "C" NOT NULL,
    idempotency_key        text COLLATE "C" NOT NULL,
    kind                   text NOT NULL,
    status                 text NOT NULL,
    currency               text NOT NULL,
    capture_method         text NOT NULL,
    reason                 text,
    customer               text,
    payment_method         text,
    stripe_account         text,
    stripe_payment_intent  text,
    stripe_charge          text,
    batch_id               text,
    failure                json,
    details                json,
    CONSTRAINT payments_tenant_id_idempotency_key_key UNIQUE (tenant_id, idempotency_key),
    CONSTRAINT payments_id_length CHECK (octet_length(id) = 16),
    CONSTRAINT payments_fingerprint_length CHECK (octet_length(fingerprint) = 32),
    CONSTRAINT payments_last_token_length CHECK (octet_length(last_token) = 16),
    CONSTRAINT payments_kind CHECK (kind IN ('charge', 'capture', 'cancel', 'refund', 'batch')),
    CONSTRAINT payments_lane CHECK (lane IN (1, 2)),
    CONSTRAINT payments_status CHECK (status IN ('received', 'waiting', 'unknown', 'pending', 'requires_capture', 'requires_action',
        'needs_review', 'stalled', 'succeeded', 'failed', 'rejected', 'expired', 'canceled')),
    CONSTRAINT payments_final_iff_finalized_at CHECK (
        (status IN ('succeeded', 'failed', 'rejected', 'expired', 'canceled')) = (finalized_at IS NOT NULL)),
    CONSTRAINT payments_amount CHECK (amount >= 0),
    CONSTRAINT payments_captured CHECK (amount_captured >= 0 AND amount_captured <= amount),
    CONSTRAINT payments_refunded CHECK (amount_refunded >= 0 AND amount_refunded <= amount_captured),
    CONSTRAINT payments_counters CHECK (tries >= 0 AND rounds >= 0 AND sequence >= 0)
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.05);

-- Made after the unique key: while the table is empty the planner finds both as good for a look-up by id, and takes the later one.
ALTER TABLE payments ADD CONSTRAINT payments_pkey PRIMARY KEY (tenant_id, id);

-- Lists, newest first. None of its columns ever changes. Its condition always holds; it keeps the index out of the plans of look-ups by id,
-- of which some, made while the table was empty, read all the payments of a tenant through it.
CREATE INDEX payments_tenant_id_created_at_idx ON payments (tenant_id, created_at, id) WHERE created_at > '-infinity';

COMMENT ON TABLE payments IS 'Every keyed request of a tenant, from its first commit on, for ever';
COMMENT ON COLUMN payments.id IS 'first 16 bytes of SHA-256(tenant_id 0x00 idempotency_key)';
COMMENT ON COLUMN payments.idempotency_key IS 'the client''s key; names one request per tenant, whatever its kind';
COMMENT ON COLUMN payments.kind IS 'what is asked for';
COMMENT ON COLUMN payments.lane IS '1 interactive, 2 bulk';
COMMENT ON COLUMN payments.status IS 'a status of payments/status.go; processing is never stored: it is a ticket with a token';
COMMENT ON COLUMN payments.reason IS 'why it stands there, a stable word';
COMMENT ON COLUMN payments.amount IS 'minor units as Stripe counts them';
COMMENT ON COLUMN payments.amount_captured IS 'minor units taken, as Stripe says';
COMMENT ON COLUMN payments.amount_refunded IS 'minor units given back, as Stripe says';
COMMENT ON COLUMN payments.currency IS 'ISO 4217, lower case';
COMMENT ON COLUMN payments.details IS 'members of the intent that few requests have: description, statement_descriptor_suffix, receipt_email, return_url, metadata, payment_id; null when there are none';
COMMENT ON COLUMN payments.expires_at IS 'after this time no charge is ever made';
COMMENT ON COLUMN payments.fingerprint IS 'SHA-256 of what decides what is charged; the same key with another one is a conflict';
COMMENT ON COLUMN payments.fingerprint_version IS 'which list of fields the fingerprint was made of';
COMMENT ON COLUMN payments.request_version IS 'which form of the request to Stripe the intent is bound to';
COMMENT ON COLUMN payments.first_submit_at IS 'committed with a token, before a send; the re-send window counts from it while in_doubt';
COMMENT ON COLUMN payments.last_submit_at IS 'committed before the last send; absence is proven only from it on';
COMMENT ON COLUMN payments.in_doubt IS 'somebody was given the right to send and no definite answer has been recorded since';
COMMENT ON COLUMN payments.absent_at IS 'first complete listing of Stripe''s records without it, 24 h or more after the last send';
COMMENT ON COLUMN payments.tries IS 'answers that proved that nothing was executed';
COMMENT ON COLUMN payments.rounds IS 'attempts and looks since the last progress; the backoff grows with it';
COMMENT ON COLUMN payments.sequence IS 'number of the newest row in payment_events';
COMMENT ON COLUMN payments.last_token IS 'token of the last recorded transition; settles a commit whose answer was lost';
COMMENT ON COLUMN payments.stripe_account IS 'the Stripe account that the first token was given for; no other one is ever asked';
COMMENT ON COLUMN payments.livemode IS 'mode of the pinned account';
COMMENT ON COLUMN payments.failure IS 'code, decline_code and message in Stripe''s words';
COMMENT ON COLUMN payments.batch_id IS 'the batch that it is a child of';

-- The tickets: one row for every payment that somebody must still act on.
CREATE TABLE queue (
    due_at      timestamptz NOT NULL,
    lane        smallint NOT NULL,
    abandoned   smallint NOT NULL DEFAULT 0,
    payment_id  bytea NOT NULL,
    token       bytea,
    tenant_id   text COLLATE "C" NOT NULL,
    CONSTRAINT queue_pkey PRIMARY KEY (tenant_id, payment_id),
    CONSTRAINT queue_payment_id_length CHECK (octet_length(payment_id) = 16),
    CONSTRAINT queue_token_length CHECK (octet_length(token) = 16),
    CONSTRAINT queue_lane CHECK (lane IN (1, 2)),
    CONSTRAINT queue_abandoned CHECK (abandoned >= 0)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.0, autovacuum_analyze_threshold = 5000);

CREATE INDEX queue_lane_tenant_id_due_at_idx ON queue (lane, tenant_id, due_at);

COMMENT ON TABLE queue IS 'One ticket for every payment that is received, waiting, unknown or pending';
COMMENT ON COLUMN queue.due_at IS 'when it may next be taken; while a token is there, the end of its owner''s lease';
COMMENT ON COLUMN queue.token IS 'who has it now; null: nobody';
COMMENT ON COLUMN queue.abandoned IS 'owners in a row that vanished without recording anything';

-- The timeline, append-only. An event's body stands here once; the outbox only points to it.
CREATE TABLE payment_events (
    at          timestamptz NOT NULL,
    sequence    bigint NOT NULL,
    payment_id  bytea NOT NULL,
    tenant_id   text COLLATE "C" NOT NULL,
    type        text NOT NULL,
    status      text NOT NULL,
    reason      text,
    body        json NOT NULL,
    CONSTRAINT payment_events_pkey PRIMARY KEY (tenant_id, payment_id, sequence),
    CONSTRAINT payment_events_payment_id_length CHECK (octet_length(payment_id) = 16),
    CONSTRAINT payment_events_sequence CHECK (sequence >= 1)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05);

COMMENT ON TABLE payment_events IS 'One row for every transition that was told to anybody';
COMMENT ON COLUMN payment_events.sequence IS 'per payment, from 1, without gaps';
COMMENT ON COLUMN payment_events.type IS 'the event''s type: oncepay.payment.<status>';
COMMENT ON COLUMN payment_events.body IS 'the CloudEvent, byte for byte as it is published';
