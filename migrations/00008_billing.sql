-- +goose Up

-- Which exchanges count: requests of clients that were answered by the provider. Not
-- those that failed, were answered from the cache (nobody was asked then), measured a
-- prompt or listed models, nor what the product asks of models by itself. This is the
-- one place that says so.
-- +goose StatementBegin
CREATE FUNCTION exchange_counts(endpoint text, class text, status int, error_from text, attempts int) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT attempts > 0 AND status BETWEEN 200 AND 299 AND error_from = ''
    AND endpoint NOT IN ('/v1/messages/count_tokens', '/v1/responses/input_tokens', '/v1/models', '/mcp')
    AND class NOT IN ('summary', 'embedding')
$$;
-- +goose StatementEnd

-- What counts, by the hour in which it arrived. Written in the statement that records
-- the exchanges, so that it is their number exactly.
CREATE TABLE usage_meter (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  hour         timestamptz NOT NULL,
  exchanges    bigint NOT NULL,
  metered      bigint NOT NULL DEFAULT 0, -- of them, those that a meter event holds
  looked_at    bigint NOT NULL DEFAULT 0, -- their number when somebody last looked
  PRIMARY KEY (workspace_id, hour),
  CHECK (metered <= exchanges)
);
CREATE INDEX usage_meter_new ON usage_meter (workspace_id) WHERE exchanges <> looked_at;

-- What Stripe is to be told of usage. A row is made once, in the transaction that takes
-- its exchanges out of usage_meter, and sent under its id until Stripe has it.
CREATE TABLE meter_events (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  id           uuid NOT NULL,        -- version 7; Stripe's identifier
  customer     text NOT NULL,
  at           timestamptz NOT NULL, -- the time that Stripe is told
  exchanges    bigint NOT NULL CHECK (exchanges > 0),
  tried_at     timestamptz,          -- first sent under this id; NULL: never
  sent_at      timestamptz,          -- Stripe has it
  PRIMARY KEY (workspace_id, id)
);
CREATE INDEX meter_events_unsent ON meter_events (workspace_id) WHERE sent_at IS NULL;

-- What is known of a workspace's subscription: Stripe's state as it was last read.
CREATE TABLE billing_accounts (
  workspace_id   uuid PRIMARY KEY REFERENCES workspaces ON DELETE CASCADE,
  customer       text NOT NULL DEFAULT '',           -- Stripe's ids
  subscription   text NOT NULL DEFAULT '',
  plan           text NOT NULL DEFAULT 'free' CHECK (plan IN ('free', 'pro', 'team')),
  status         text NOT NULL DEFAULT '',           -- of the subscription; empty: there was never one
  seats          bigint NOT NULL DEFAULT 0,
  period_start   timestamptz,
  period_end     timestamptz,
  trial_end      timestamptz,
  ends_at        timestamptz,                        -- canceled for then
  past_due_since timestamptz,                        -- the oldest payment that failed and is still owed
  metered_from   timestamptz,                        -- usage between both is told to Stripe
  metered_to     timestamptz,
  reading        bigint NOT NULL DEFAULT 0,          -- number of the newest reading that began
  read           bigint NOT NULL DEFAULT 0,          -- and of the one that is kept
  restraint      text NOT NULL DEFAULT '' CHECK (restraint IN ('', 'payment', 'quota')),
  restrained_at  timestamptz,
  told           text NOT NULL DEFAULT '',           -- the trouble that people were written about
  due_at         timestamptz NOT NULL DEFAULT '-infinity' -- when to look at it again
);
CREATE UNIQUE INDEX billing_accounts_customer ON billing_accounts (customer) WHERE customer <> '';
CREATE INDEX billing_accounts_due ON billing_accounts (due_at);

-- The notices of Stripe, each once. Nothing of them is kept but that they came.
CREATE TABLE billing_events (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  id           uuid NOT NULL, -- made of Stripe's id
  event        text NOT NULL, -- Stripe's id
  type         text NOT NULL,
  received_at  timestamptz NOT NULL,
  done_at      timestamptz,   -- Stripe was read after it came
  PRIMARY KEY (workspace_id, id)
);

-- Stripe's customers whose workspace was deleted and whose subscriptions are to end. A
-- row names no workspace, of which nothing may be left, and goes once Stripe has done
-- it.
CREATE TABLE subscription_ends (
  id       uuid PRIMARY KEY,    -- version 7: ordered by time
  customer text NOT NULL,       -- Stripe's id
  asked_at timestamptz NOT NULL,
  attempts int NOT NULL DEFAULT 0,
  next_at  timestamptz NOT NULL -- not to be tried before
);
CREATE INDEX subscription_ends_next ON subscription_ends (next_at);

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['usage_meter', 'meter_events', 'billing_accounts', 'billing_events'] LOOP
    EXECUTE format('CREATE POLICY tenant ON %I USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()))', t);
  END LOOP;
  FOREACH t IN ARRAY ARRAY['usage_meter', 'meter_events', 'billing_accounts', 'billing_events',
    'subscription_ends'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
  END LOOP;
END $$;
-- +goose StatementEnd

-- A notice names a customer of Stripe: whose account that is, is found by it.
CREATE POLICY named_customer ON billing_accounts FOR SELECT
  USING (customer = (SELECT NULLIF(current_setting('app.stripe_customer', true), '')));

-- Jobs see where there is something to do, and then work for one workspace after the other.
-- A subscription to end must belong to a customer of the transaction's workspace.
CREATE POLICY worker ON usage_meter FOR SELECT TO palimpsest_worker USING (true);
CREATE POLICY worker ON billing_accounts FOR SELECT TO palimpsest_worker USING (true);
CREATE POLICY worker ON subscription_ends TO palimpsest_worker USING (true) WITH CHECK (true);
CREATE POLICY queue ON subscription_ends FOR INSERT TO palimpsest_app WITH CHECK (EXISTS (
  SELECT FROM billing_accounts b WHERE b.workspace_id = (SELECT app_workspace()) AND b.customer = subscription_ends.customer));

GRANT SELECT, INSERT, UPDATE ON usage_meter, meter_events, billing_accounts TO palimpsest_app;
GRANT SELECT, INSERT, UPDATE (done_at) ON billing_events TO palimpsest_app;
GRANT INSERT ON subscription_ends TO palimpsest_app;
GRANT SELECT ON usage_meter, billing_accounts TO palimpsest_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON subscription_ends TO palimpsest_worker;

-- +goose Down
DROP TABLE subscription_ends, billing_events, billing_accounts, meter_events, usage_meter;
DROP FUNCTION exchange_counts(text, text, int, text, int);
