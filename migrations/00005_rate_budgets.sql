-- +goose Up

-- A token bucket for each Stripe account, for all processes together. The few rows are written all the time: their pages are left nearly empty, so
-- that old versions are pruned where they are and no index is touched.
CREATE TABLE rate_budgets (
    tokens                   double precision NOT NULL,
    updated_at               timestamptz NOT NULL,
    rate                     double precision,
    throttled_at             timestamptz,
    interactive_waits_until  timestamptz,
    bulk_waits_until         timestamptz,
    livemode                 boolean NOT NULL,
    account                  text COLLATE "C" NOT NULL,
    CONSTRAINT rate_budgets_pkey PRIMARY KEY (account, livemode),
    CONSTRAINT rate_budgets_account CHECK (account <> ''),
    CONSTRAINT rate_budgets_tokens CHECK (tokens >= 0 AND tokens < 'infinity'),
    CONSTRAINT rate_budgets_rate CHECK (rate > 0 AND rate < 'infinity'),
    CONSTRAINT rate_budgets_throttled_is_whole CHECK ((rate IS NULL) = (throttled_at IS NULL))
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

COMMENT ON TABLE rate_budgets IS 'How many calls to Stripe may be begun now, by account; written only where a rate is set';
COMMENT ON COLUMN rate_budgets.tokens IS 'calls that could be begun at updated_at; grows with the rate up to the burst. Fractions count: nothing is lost by rounding';
COMMENT ON COLUMN rate_budgets.rate IS 'calls a second at throttled_at, after Stripe said 429; grows back to the setting within 30 s. Null: the setting';
COMMENT ON COLUMN rate_budgets.interactive_waits_until IS 'interactive tickets were left for want of tokens: until then bulk gets none';
COMMENT ON COLUMN rate_budgets.bulk_waits_until IS 'bulk tickets were left for want of tokens: until then new bulk requests queue up behind them';

-- A tenant with a way to Stripe of its own: what Stripe itself named, read once and never changed, so that a key which later belongs to another
-- account is noticed before anything is sent with it.
ALTER TABLE tenants
    ADD COLUMN account text,
    ADD COLUMN livemode boolean,
    ADD CONSTRAINT tenants_account_is_whole CHECK ((account IS NULL) = (livemode IS NULL)),
    ADD CONSTRAINT tenants_account_has_a_way CHECK (account IS NULL OR stripe_account IS NOT NULL OR stripe_key_ref IS NOT NULL),
    ADD CONSTRAINT tenants_account_is_the_connected_one CHECK (account IS NULL OR stripe_account IS NULL OR account = stripe_account);

-- Finds the tenants that do not share the installation's account, without reading the others.
CREATE INDEX tenants_own_way_idx ON tenants (id) WHERE stripe_account IS NOT NULL OR stripe_key_ref IS NOT NULL;

-- Finds the tenants of an account, to serve them in turn.
CREATE INDEX tenants_account_idx ON tenants (account, livemode, id) WHERE account IS NOT NULL;

COMMENT ON COLUMN tenants.account IS 'the account that Stripe named for the tenant''s own way; null until it was read';
COMMENT ON COLUMN tenants.livemode IS 'mode of that account';
