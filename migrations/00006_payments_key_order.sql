-- +goose Up

-- The same promise, in an index that begins with the key. While a table has a few hundred rows its primary key's index has grown a level and this
-- one has not; a look-up by (tenant_id, id) that was planned in that moment, and kept its plan, went through the tenant's half of this index and
-- read all of a tenant's payments. Beginning with the key it is of no use for such a look-up.
CREATE UNIQUE INDEX payments_idempotency_key_tenant_id_idx ON payments (idempotency_key, tenant_id);
ALTER TABLE payments DROP CONSTRAINT payments_tenant_id_idempotency_key_key,
    ADD CONSTRAINT payments_tenant_id_idempotency_key_key UNIQUE USING INDEX payments_idempotency_key_tenant_id_idx;
