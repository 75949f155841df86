-- +goose Up

-- The dead letters of a batch by its id, which is the SHA-256 of tenant and key: with many letters it was computed anew for each of them. What makes
-- bytes of a text depends on the database's encoding, which is UTF-8 for all its life, so that its owner may call it immutable.
-- +goose StatementBegin
CREATE FUNCTION keyed_id(tenant_id text, key text) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN substr(sha256(convert_to(tenant_id, 'UTF8') || '\x00'::bytea || convert_to(key, 'UTF8')), 1, 16);
-- +goose StatementEnd

COMMENT ON FUNCTION keyed_id IS 'the id of what a tenant has put under a key, as bytes';

CREATE INDEX dead_letters_batch_id_idx ON dead_letters (keyed_id(tenant_id, split_part(idempotency_key, '::', 1)));
