-- +goose Up

-- The secret that a person's authenticator app makes codes from, sealed for the person.
CREATE TABLE second_factors (
  user_id      uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
  sealed       bytea NOT NULL,
  created_at   timestamptz NOT NULL,
  confirmed_at timestamptz,              -- NULL: no code was typed yet, so none is asked for
  used_at      timestamptz,
  last_step    bigint NOT NULL DEFAULT 0 -- time step of the last accepted code; none up to it is accepted
);

-- What lets a person in without their app, once each. The codes are not kept.
CREATE TABLE recovery_codes (
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  hash    bytea NOT NULL,                -- SHA-256 of person and code
  PRIMARY KEY (user_id, hash)
);

CREATE POLICY own ON second_factors USING (user_id = (SELECT app_user())) WITH CHECK (user_id = (SELECT app_user()));
CREATE POLICY own ON recovery_codes USING (user_id = (SELECT app_user())) WITH CHECK (user_id = (SELECT app_user()));
-- Who has one is seen by the worker that seals what an older master key sealed anew.
CREATE POLICY worker ON second_factors FOR SELECT USING ((SELECT current_setting('app.worker', true)) = 'rotation');

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['second_factors', 'recovery_codes']
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
  END LOOP;
END $$;
-- +goose StatementEnd
GRANT SELECT, INSERT, DELETE, UPDATE (sealed, created_at, confirmed_at, used_at, last_step) ON second_factors TO palimpsest_app;
GRANT SELECT, INSERT, DELETE ON recovery_codes TO palimpsest_app;

-- Where a workspace's people prove who they are (OpenID Connect).
CREATE TABLE sign_ons (
  workspace_id uuid PRIMARY KEY REFERENCES workspaces ON DELETE CASCADE,
  issuer       text NOT NULL,
  client_id    text NOT NULL,
  sealed       bytea NOT NULL,           -- client secret, for this workspace, issuer and client
  role         text NOT NULL CHECK (role IN ('member', 'viewer')), -- of people it brings in
  saved_at     timestamptz NOT NULL DEFAULT now()
);

-- The domains of addresses that a workspace says are its own. One counts once proven, and
-- for one workspace only.
CREATE TABLE sign_on_domains (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  domain       text NOT NULL CHECK (domain = lower(domain)),
  token        text NOT NULL,            -- to be found in the domain's TXT records
  created_at   timestamptz NOT NULL DEFAULT now(),
  proven_at    timestamptz,
  PRIMARY KEY (workspace_id, domain)
);
CREATE UNIQUE INDEX sign_on_domains_proven ON sign_on_domains (domain) WHERE proven_at IS NOT NULL;

CREATE POLICY tenant ON sign_ons
  USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
CREATE POLICY tenant ON sign_on_domains
  USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
-- Before a tenant is known, whoever logs in finds whose the domain of their address is.
CREATE POLICY presented_domain ON sign_on_domains FOR SELECT
  USING (proven_at IS NOT NULL AND domain = (SELECT current_setting('app.domain', true)));
ALTER TABLE sign_ons ENABLE ROW LEVEL SECURITY;
ALTER TABLE sign_ons FORCE ROW LEVEL SECURITY;
ALTER TABLE sign_on_domains ENABLE ROW LEVEL SECURITY;
ALTER TABLE sign_on_domains FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, DELETE, UPDATE (issuer, client_id, sealed, role, saved_at) ON sign_ons TO palimpsest_app;
GRANT SELECT, INSERT, DELETE, UPDATE (proven_at) ON sign_on_domains TO palimpsest_app;

-- +goose Down
DROP TABLE sign_ons, sign_on_domains;
DROP TABLE second_factors, recovery_codes;
