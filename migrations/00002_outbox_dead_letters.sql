-- +goose Up

-- Messages that committed transactions want sent. Only the relay reads it, and it is nearly always empty.
CREATE TABLE outbox (
    id              bigint GENERATED ALWAYS AS IDENTITY,
    hold_until      timestamptz,
    sequence        bigint,
    payment_id      bytea,
    kind            text NOT NULL,
    tenant_id       text COLLATE "C",
    dead_letter_id  text COLLATE "C",
    CONSTRAINT outbox_pkey PRIMARY KEY (id),
    CONSTRAINT outbox_kind CHECK (kind IN ('event', 'dead_letter')),
    CONSTRAINT outbox_event_names_its_row CHECK (
        (kind = 'event') = (tenant_id IS NOT NULL AND payment_id IS NOT NULL AND sequence IS NOT NULL)),
    CONSTRAINT outbox_dead_letter_names_its_row CHECK ((kind = 'dead_letter') = (dead_letter_id IS NOT NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.0, autovacuum_analyze_threshold = 5000);

COMMENT ON TABLE outbox IS 'What is still to be published; a row is deleted once its message is stored in its stream';
COMMENT ON COLUMN outbox.hold_until IS 'somebody is publishing it until then';
COMMENT ON COLUMN outbox.sequence IS 'with tenant_id and payment_id: the row of payment_events whose body is to be sent';

-- What nobody could go on with. Payload and headers are bytes: they may hold what neither text nor JSON can.
CREATE TABLE dead_letters (
    first_seen      timestamptz NOT NULL,
    last_seen       timestamptz NOT NULL,
    stream_created  timestamptz,
    stream_seq      bigint,
    payload_length  integer NOT NULL,
    tries           integer NOT NULL DEFAULT 0,
    starts          integer NOT NULL DEFAULT 0,
    replays         integer NOT NULL DEFAULT 0,
    id              text COLLATE "C" NOT NULL,
    tenant_id       text COLLATE "C",
    idempotency_key text COLLATE "C",
    payment_id      bytea,
    state           text NOT NULL,
    reason          text NOT NULL,
    message         text NOT NULL,
    stream          text COLLATE "C",
    subject         text COLLATE "C",
    payload_sha256  bytea NOT NULL,
    headers         bytea,
    payload         bytea,
    CONSTRAINT dead_letters_pkey PRIMARY KEY (id),
    CONSTRAINT dead_letters_origin_key UNIQUE (stream, stream_created, stream_seq),
    CONSTRAINT dead_letters_state CHECK (state IN ('suspect', 'open', 'replayed', 'discarded')),
    CONSTRAINT dead_letters_reason CHECK (reason IN ('undecodable', 'invalid', 'card_number_detected', 'key_missing', 'key_invalid',
        'tenant_mismatch', 'tenant_unknown', 'key_reused', 'attempts_exhausted', 'handler_panic', 'worker_killed')),
    CONSTRAINT dead_letters_origin_is_whole CHECK (
        (stream IS NULL) = (stream_created IS NULL) AND (stream IS NULL) = (stream_seq IS NULL)),
    CONSTRAINT dead_letters_comes_from_somewhere CHECK (stream IS NOT NULL OR (tenant_id IS NOT NULL AND payment_id IS NOT NULL)),
    CONSTRAINT dead_letters_card_number_is_not_kept CHECK (reason <> 'card_number_detected' OR payload IS NULL),
    CONSTRAINT dead_letters_payment_id_length CHECK (octet_length(payment_id) = 16),
    CONSTRAINT dead_letters_payload_sha256_length CHECK (octet_length(payload_sha256) = 32),
    CONSTRAINT dead_letters_counters CHECK (payload_length >= 0 AND tries >= 0 AND starts >= 0 AND replays >= 0)
);

-- A payment that was given up has one dead letter, however often it is given up.
CREATE UNIQUE INDEX dead_letters_ticket_key ON dead_letters (tenant_id, payment_id) WHERE stream IS NULL;
CREATE INDEX dead_letters_last_seen_idx ON dead_letters (last_seen, id);

COMMENT ON TABLE dead_letters IS 'Messages and payments that nobody can go on with, for operators to replay or discard';
COMMENT ON COLUMN dead_letters.stream_created IS 'a stream that was made anew counts from 1 again';
COMMENT ON COLUMN dead_letters.payload IS 'the raw bytes; null for a card number, of which length and SHA-256 are all that is kept';
COMMENT ON COLUMN dead_letters.starts IS 'of a suspect: how often it was begun; else: how often it was seen again';
COMMENT ON COLUMN dead_letters.state IS 'suspect: about to be started, after it was delivered often and never admitted';
