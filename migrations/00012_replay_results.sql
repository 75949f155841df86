-- +goose Up

-- Of the items of a replay that are about one payment, one has succeeded: whoever comes later asks for it here.
CREATE INDEX replay_items_succeeded_idx ON replay_items (replay_id, tenant_id, payment_id) WHERE result = 'succeeded';
