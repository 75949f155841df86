-- +goose Up

CREATE TABLE tenants (
    created_at      timestamptz NOT NULL,
    id              text COLLATE "C" NOT NULL,
    stripe_account  text,
    stripe_key_ref  text,
    CONSTRAINT tenants_pkey PRIMARY KEY (id),
    CONSTRAINT tenants_id_form CHECK (id ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
    CONSTRAINT tenants_one_way_to_stripe CHECK (stripe_account IS NULL OR stripe_key_ref IS NULL)
);

COMMENT ON TABLE tenants IS 'Whoever may have payments. Tenants are never deleted';
COMMENT ON COLUMN tenants.stripe_account IS 'connected account, sent as Stripe-Account; null: the installation''s own';
COMMENT ON COLUMN tenants.stripe_key_ref IS 'where the tenant''s own Stripe key is found (file:/path); never the key';

CREATE TABLE api_keys (
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz,
    revoked_at  timestamptz,
    id          text COLLATE "C" NOT NULL,
    tenant_id   text COLLATE "C" NOT NULL,
    prefix      text NOT NULL,
    hash        bytea NOT NULL,
    scopes      text[] NOT NULL,
    CONSTRAINT api_keys_pkey PRIMARY KEY (id),
    CONSTRAINT api_keys_hash_key UNIQUE (hash),
    CONSTRAINT api_keys_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id),
    CONSTRAINT api_keys_hash_length CHECK (octet_length(hash) = 32)
);

CREATE INDEX api_keys_tenant_id_idx ON api_keys (tenant_id, created_at);

COMMENT ON TABLE api_keys IS 'Keys of the HTTP API';
COMMENT ON COLUMN api_keys.hash IS 'SHA-256 of the secret, which is shown once and kept nowhere';
COMMENT ON COLUMN api_keys.prefix IS 'first characters of the secret, to tell keys apart';
