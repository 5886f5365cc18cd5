-- +goose Up

-- Keys, settings, and who changed them.

-- The keys that clients send requests with.
CREATE TABLE api_keys (
  workspace_id  uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  id            uuid NOT NULL,
  name          text NOT NULL,
  prefix        text NOT NULL,
  suffix        text NOT NULL,
  hash          bytea NOT NULL UNIQUE, -- HMAC-SHA256 of the secret
  scopes        text NOT NULL,         -- comma-separated
  pipeline      text NOT NULL DEFAULT '',
  created_by    uuid NOT NULL,
  created_at    timestamptz NOT NULL DEFAULT now(),
  expires_at    timestamptz,
  revoked_at    timestamptz,
  last_used_at  timestamptz,
  -- What keys are held to, and the secret that a rotated key had before. Empty limits
  -- hold a key to nothing.
  limits        jsonb NOT NULL DEFAULT '{}',
  old_hash      bytea UNIQUE,
  old_until     timestamptz,
  -- Of the exchanges of such a key nothing is kept but figures.
  no_store      boolean NOT NULL DEFAULT false,
  -- The member whose role bounds what an API key may do, where that is not who created it:
  -- who rotated it last, or took it over when its creator left. NULL: the creator.
  -- The secret before a rotation stays with who stood behind it.
  person_id     uuid,
  old_person_id uuid,
  PRIMARY KEY (workspace_id, id),
  CHECK ((old_hash IS NULL) = (old_until IS NULL))
);

-- The keys that requests go on with.
CREATE TABLE provider_keys (
  workspace_id  uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  id            uuid NOT NULL,
  provider      text NOT NULL,
  name          text NOT NULL,
  base_url      text NOT NULL DEFAULT '',
  last4         text NOT NULL,
  sealed        bytea NOT NULL,
  created_by    uuid NOT NULL,
  created_at    timestamptz NOT NULL DEFAULT now(),
  -- How a provider key is used, and what came of it.
  preset        text NOT NULL DEFAULT '',
  both_dialects boolean NOT NULL DEFAULT false,     -- takes the other dialect too
  auth          text NOT NULL DEFAULT '',           -- header of the key; empty: as the dialect has it
  headers       jsonb NOT NULL DEFAULT '[]',        -- sent along: [{"name", "value"}]
  models        jsonb NOT NULL DEFAULT '[]',        -- patterns
  place         int NOT NULL DEFAULT 0,             -- smaller ones are asked first
  is_default    boolean NOT NULL DEFAULT false,
  disabled      boolean NOT NULL DEFAULT false,
  sealed_at     timestamptz NOT NULL DEFAULT now(), -- when the secret was given
  checked_at    timestamptz,                        -- NULL: never tested
  check_ok      boolean NOT NULL DEFAULT false,
  check_status  int NOT NULL DEFAULT 0,
  check_problem text NOT NULL DEFAULT '',
  PRIMARY KEY (workspace_id, id)
);

-- What workspaces have set, version by version.
CREATE TABLE pipeline_configs (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  version      int NOT NULL,
  modules      text NOT NULL DEFAULT '',
  yaml         text NOT NULL DEFAULT '',
  saved_by     uuid NOT NULL,
  saved_at     timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (workspace_id, version)
);

-- Context windows of models for one workspace: set by people, or learnt from what
-- a provider said of a prompt that was too long.
CREATE TABLE model_windows (
  workspace_id  uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  model         text NOT NULL CHECK (model <> ''),
  window_tokens int NOT NULL CHECK (window_tokens > 0),
  source        text NOT NULL CHECK (source IN ('override', 'learnt')),
  set_by        uuid, -- NULL: learnt
  set_at        timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (workspace_id, model)
);

-- The key under which what is kept of a workspace is sealed, itself sealed by the
-- vault. Without this row nothing of the workspace opens any more, not even in a
-- backup of the bucket.
CREATE TABLE data_keys (
  workspace_id uuid PRIMARY KEY REFERENCES workspaces ON DELETE CASCADE,
  wrapped      bytea NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now(),
  wrapped_at   timestamptz NOT NULL DEFAULT now()
);

-- What the first start has sealed with its master key, so that a start with another is
-- refused also where nothing else is sealed yet. One row; it belongs to nobody.
CREATE TABLE master_proof (
  one       boolean PRIMARY KEY DEFAULT true CHECK (one),
  sealed    bytea NOT NULL,
  sealed_at timestamptz NOT NULL DEFAULT now()
);

-- Who changed what. The application adds rows and reads them; it cannot change or
-- remove one. They end with their workspace.
CREATE TABLE audit_entries (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  id           uuid NOT NULL,            -- version 7: ordered by time
  at           timestamptz NOT NULL DEFAULT clock_timestamp(),
  user_id      uuid,                     -- both NULL: the product itself
  api_key_id   uuid,
  actor        text NOT NULL DEFAULT '', -- name of either, as it was then
  address      text NOT NULL DEFAULT '', -- of the client
  action       text NOT NULL,
  target       text NOT NULL DEFAULT '',
  before       jsonb,
  after        jsonb,
  PRIMARY KEY (workspace_id, id)
);
CREATE INDEX audit_entries_at ON audit_entries (workspace_id, action, id);

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['api_keys', 'provider_keys', 'pipeline_configs', 'model_windows', 'data_keys',
    'audit_entries'] LOOP
    EXECUTE format('CREATE POLICY tenant ON %I USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()))', t);
  END LOOP;
  FOREACH t IN ARRAY ARRAY['api_keys', 'provider_keys', 'pipeline_configs', 'model_windows', 'data_keys',
    'master_proof', 'audit_entries'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
  END LOOP;
END $$;
-- +goose StatementEnd

-- The proxy finds a key by either of its secrets, before a tenant is known.
CREATE POLICY presented_key ON api_keys FOR SELECT
  USING (hash = (SELECT app_api_key()) OR old_hash = (SELECT app_api_key()));

-- Startup checks the master key as the owner, before it creates logins: against the proof,
-- and against data keys of any workspace. The policies look up the table's owner, because
-- ownership can change.
CREATE POLICY worker ON master_proof TO palimpsest_worker USING (true) WITH CHECK (true);
CREATE POLICY owner ON master_proof
  USING ((SELECT pg_has_role(c.relowner, 'USAGE') FROM pg_class c WHERE c.oid = 'master_proof'::regclass))
  WITH CHECK ((SELECT pg_has_role(c.relowner, 'USAGE') FROM pg_class c WHERE c.oid = 'master_proof'::regclass));
CREATE POLICY owner ON data_keys FOR SELECT
  USING ((SELECT pg_has_role(c.relowner, 'USAGE') FROM pg_class c WHERE c.oid = 'data_keys'::regclass));

GRANT SELECT, INSERT, UPDATE, DELETE ON api_keys, provider_keys, model_windows TO palimpsest_app;
GRANT SELECT, INSERT ON pipeline_configs, audit_entries TO palimpsest_app;
GRANT SELECT, INSERT, UPDATE (wrapped, wrapped_at) ON data_keys TO palimpsest_app;
GRANT SELECT, UPDATE (sealed, sealed_at) ON master_proof TO palimpsest_app;
GRANT SELECT, UPDATE (sealed, sealed_at) ON master_proof TO palimpsest_worker;

-- +goose Down
DROP TABLE audit_entries, master_proof, data_keys, model_windows, pipeline_configs, provider_keys, api_keys;
