-- +goose Up

-- Who is held back. Admit and Take read it in their own transaction, so that a pause holds from its commit on; it is nearly always empty.
CREATE TABLE pauses (
    since       timestamptz NOT NULL,
    until       timestamptz,
    id          bigint GENERATED ALWAYS AS IDENTITY,
    tenant_id   text COLLATE "C",
    account     text COLLATE "C",
    reason      text NOT NULL,
    actor       text NOT NULL,
    CONSTRAINT pauses_pkey PRIMARY KEY (id),
    CONSTRAINT pauses_one_scope CHECK (tenant_id IS NULL OR account IS NULL)
);

-- One pause for each tenant, each account and everybody: pausing again changes it.
CREATE UNIQUE INDEX pauses_scope_key ON pauses (coalesce(tenant_id, ''), coalesce(account, ''));

COMMENT ON TABLE pauses IS 'Whose payments are accepted and not sent; a row is deleted when it is resumed';
COMMENT ON COLUMN pauses.tenant_id IS 'whose; with account null too: everybody''s';
COMMENT ON COLUMN pauses.account IS 'a Stripe account: all tenants that it is used for';
COMMENT ON COLUMN pauses.until IS 'it holds nothing from then on; null: until somebody resumes';

-- Finds the tickets that were abandoned so often that the next owner works on them alone. There are none but after crashes.
CREATE INDEX queue_abandoned_idx ON queue (lane, due_at) WHERE abandoned >= 2;

-- What operators did, written by the transaction that did it.
CREATE TABLE audit (
    at          timestamptz NOT NULL,
    id          bigint GENERATED ALWAYS AS IDENTITY,
    tenant_id   text COLLATE "C",
    actor       text NOT NULL,
    action      text NOT NULL,
    reason      text,
    target      text,
    filter      json,
    result      json,
    CONSTRAINT audit_pkey PRIMARY KEY (id)
);

-- +goose StatementBegin
CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit is append-only' USING ERRCODE = 'restrict_violation';
END;
$$;
-- +goose StatementEnd

CREATE TRIGGER audit_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();

COMMENT ON TABLE audit IS 'What operators did: append-only';
COMMENT ON COLUMN audit.target IS 'id of what it was done to; null for a filter';
