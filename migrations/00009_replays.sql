-- +goose Up

-- Jobs that take dead letters up again. Their items are chosen by the transaction that makes them.
CREATE TABLE replays (
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    finished_at  timestamptz,
    issued_until timestamptz,
    rate         double precision NOT NULL DEFAULT 0,
    total        integer NOT NULL,
    passed_over  integer NOT NULL DEFAULT 0,
    id           text COLLATE "C" NOT NULL,
    state        text NOT NULL,
    actor        text NOT NULL,
    reason       text,
    filter       json NOT NULL,
    changes      json,
    amount       json NOT NULL,
    CONSTRAINT replays_pkey PRIMARY KEY (id),
    CONSTRAINT replays_state CHECK (state IN ('running', 'paused', 'canceled', 'completed')),
    CONSTRAINT replays_finished CHECK ((state IN ('canceled', 'completed')) = (finished_at IS NOT NULL)),
    CONSTRAINT replays_rate CHECK (rate >= 0),
    CONSTRAINT replays_total CHECK (total >= 0 AND passed_over >= 0)
);

CREATE INDEX replays_created_at_idx ON replays (created_at, id);
-- What runners look for: nearly always nothing.
CREATE INDEX replays_running_idx ON replays (created_at, id) WHERE state = 'running';

COMMENT ON TABLE replays IS 'Operators'' jobs that take dead letters up again, run by any server';
COMMENT ON COLUMN replays.rate IS 'items a second; 0: as fast as they can be issued';
COMMENT ON COLUMN replays.issued_until IS 'up to when the rate has been used up';
COMMENT ON COLUMN replays.passed_over IS 'letters that matched and were in another unfinished replay';
COMMENT ON COLUMN replays.changes IS 'members that are set in messages first';
COMMENT ON COLUMN replays.amount IS 'sums by currency of what was chosen';

-- The items: one for each dead letter. held_until and starts make a crash of whoever runs it visible to the next.
CREATE TABLE replay_items (
    held_until   timestamptz,
    issued_at    timestamptz,
    finished_at  timestamptz,
    starts       smallint NOT NULL DEFAULT 0,
    payment_id   bytea,
    replay_id    text COLLATE "C" NOT NULL,
    letter_id    text COLLATE "C" NOT NULL,
    tenant_id    text COLLATE "C",
    result       text,
    status       text,
    detail       text,
    CONSTRAINT replay_items_pkey PRIMARY KEY (replay_id, letter_id),
    CONSTRAINT replay_items_result CHECK (result IN ('succeeded', 'already_settled', 'failed_again', 'conflict', 'skipped')),
    CONSTRAINT replay_items_finished CHECK ((result IS NULL) = (finished_at IS NULL)),
    CONSTRAINT replay_items_payment_id_length CHECK (octet_length(payment_id) = 16)
) WITH (fillfactor = 50);

-- A dead letter is in one unfinished replay at most, so that two operators replay it once.
CREATE UNIQUE INDEX replay_items_open_letter_key ON replay_items (letter_id) WHERE result IS NULL;
CREATE INDEX replay_items_open_idx ON replay_items (replay_id, letter_id) WHERE result IS NULL;
CREATE INDEX replay_items_to_issue_idx ON replay_items (replay_id, letter_id) WHERE result IS NULL AND issued_at IS NULL;

COMMENT ON TABLE replay_items IS 'One row for each dead letter of a replay';
COMMENT ON COLUMN replay_items.held_until IS 'somebody is issuing it until then';
COMMENT ON COLUMN replay_items.starts IS 'how often its message was begun: one that ends its process is not begun for ever';
COMMENT ON COLUMN replay_items.issued_at IS 'its ticket was issued; from then on its payment is watched';

-- Lists of one tenant's dead letters, and those of a key or a batch.
CREATE INDEX dead_letters_tenant_id_last_seen_idx ON dead_letters (tenant_id, last_seen, id);
CREATE INDEX dead_letters_idempotency_key_idx ON dead_letters (idempotency_key);
CREATE INDEX dead_letters_batch_idx ON dead_letters (split_part(idempotency_key, '::', 1));
