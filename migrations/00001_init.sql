-- +goose Up

-- The application connects as a login that is a member of this role. It owns
-- nothing, so row-level security binds it.
-- +goose StatementBegin
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'palimpsest_app') THEN
    CREATE ROLE palimpsest_app NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
  END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; -- another database of the cluster made it just now
END $$;
-- +goose StatementEnd

-- Whom the current transaction works for. Each is set with set_config(…, true),
-- so it ends with the transaction; without one no row is seen.
-- +goose StatementBegin
CREATE FUNCTION app_workspace() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT NULLIF(current_setting('app.workspace_id', true), '')::uuid $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION app_user() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT NULLIF(current_setting('app.user_id', true), '')::uuid $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION app_email() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT NULLIF(current_setting('app.email', true), '') $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION app_api_key() RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT decode(NULLIF(current_setting('app.api_key', true), ''), 'hex') $$;
-- +goose StatementEnd

-- People. They stand outside the tenants: one person may belong to several.
CREATE TABLE users (
  id            uuid PRIMARY KEY,
  email         text NOT NULL UNIQUE CHECK (email = lower(email)),
  password_hash text NOT NULL,
  created_at    timestamptz NOT NULL DEFAULT now()
);

-- Tenants.
CREATE TABLE workspaces (
  workspace_id uuid PRIMARY KEY,
  name         text NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE members (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  user_id      uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  role         text NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'viewer', 'billing')),
  created_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (workspace_id, user_id)
);
CREATE INDEX members_user ON members (user_id);

CREATE TABLE logins (
  id           uuid PRIMARY KEY,
  user_id      uuid NOT NULL,
  workspace_id uuid NOT NULL, -- the workspace the login works in
  user_agent   text NOT NULL DEFAULT '',
  created_at   timestamptz NOT NULL DEFAULT now(),
  expires_at   timestamptz NOT NULL,
  revoked_at   timestamptz,
  FOREIGN KEY (workspace_id, user_id) REFERENCES members ON DELETE CASCADE
);
CREATE INDEX logins_user ON logins (user_id);
CREATE INDEX logins_member ON logins (workspace_id, user_id);

CREATE TABLE api_keys (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  id           uuid NOT NULL,
  name         text NOT NULL,
  prefix       text NOT NULL,
  suffix       text NOT NULL,
  hash         bytea NOT NULL UNIQUE, -- HMAC-SHA256 of the secret
  scopes       text NOT NULL,         -- comma-separated
  pipeline     text NOT NULL DEFAULT '',
  created_by   uuid NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now(),
  expires_at   timestamptz,
  revoked_at   timestamptz,
  last_used_at timestamptz,
  PRIMARY KEY (workspace_id, id)
);

CREATE TABLE provider_keys (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  id           uuid NOT NULL,
  provider     text NOT NULL,
  name         text NOT NULL,
  base_url     text NOT NULL DEFAULT '',
  last4        text NOT NULL,
  sealed       bytea NOT NULL,
  created_by   uuid NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (workspace_id, id)
);

CREATE TABLE pipeline_configs (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  version      int NOT NULL,
  modules      text NOT NULL DEFAULT '',
  yaml         text NOT NULL DEFAULT '',
  saved_by     uuid NOT NULL,
  saved_at     timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (workspace_id, version)
);

-- Sessions and what the model sees of them.
CREATE TABLE sessions (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  id           uuid NOT NULL,
  api_key_id   uuid NOT NULL,
  format       text NOT NULL,
  name         text NOT NULL DEFAULT '', -- the client's own id; empty: recognised by content
  source       text NOT NULL,            -- where the id came from
  title        text NOT NULL DEFAULT '', -- start of the first typed message
  client       text NOT NULL DEFAULT '',
  model        text NOT NULL DEFAULT '',
  started_at   timestamptz NOT NULL,
  last_at      timestamptz NOT NULL,
  exchanges    bigint NOT NULL DEFAULT 0,
  epochs       bigint NOT NULL DEFAULT 0,
  tokens_before bigint NOT NULL DEFAULT 0,
  tokens_after  bigint NOT NULL DEFAULT 0,
  net_microusd  bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (workspace_id, id)
);
CREATE INDEX sessions_last ON sessions (workspace_id, last_at DESC, id DESC);

CREATE TABLE lanes (
  workspace_id uuid NOT NULL,
  id           uuid NOT NULL,
  session_id   uuid NOT NULL,
  parent_id    uuid,                    -- the lane it forked from
  fork_at      int NOT NULL DEFAULT 0,  -- messages shared with the parent
  fork_epoch   int NOT NULL DEFAULT 0,  -- number of the newest projection taken over from the parent
  created_at   timestamptz NOT NULL,
  last_at      timestamptz NOT NULL,
  position     int NOT NULL DEFAULT 0,  -- messages of the request that went furthest
  PRIMARY KEY (workspace_id, id),
  FOREIGN KEY (workspace_id, session_id) REFERENCES sessions ON DELETE CASCADE
);
CREATE INDEX lanes_session ON lanes (workspace_id, session_id);

-- Where the requests of a lane ended: a request whose history passes through a
-- head goes on from there.
CREATE TABLE lane_heads (
  workspace_id uuid NOT NULL,
  head         bytea NOT NULL,     -- link of the hash chain after the request's last message
  lane_id      uuid NOT NULL,
  position     int NOT NULL,       -- messages up to the head
  seen_at      timestamptz NOT NULL,
  PRIMARY KEY (workspace_id, head),
  FOREIGN KEY (workspace_id, lane_id) REFERENCES lanes ON DELETE CASCADE
);
CREATE INDEX lane_heads_lane ON lane_heads (workspace_id, lane_id);

-- A projection: what stands in the prompt for a lane's first messages.
CREATE TABLE epochs (
  workspace_id uuid NOT NULL,
  lane_id      uuid NOT NULL,
  number       int NOT NULL,
  covers       int NOT NULL,       -- messages of the lane it stands for
  chain        bytea NOT NULL,     -- link of the history after them
  projection   bytea NOT NULL,     -- JSON head, rendered bytes, zstd
  reason       text NOT NULL,
  tokens_before int NOT NULL,
  tokens_after  int NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (workspace_id, lane_id, number),
  FOREIGN KEY (workspace_id, lane_id) REFERENCES lanes ON DELETE CASCADE
);

-- The archive: every message once, by its SHA-256; and which message stands where.
CREATE TABLE archive_objects (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  hash         bytea NOT NULL,
  size         int NOT NULL,       -- bytes of the original
  encoding     smallint NOT NULL,  -- of the stored bytes: 0 as they are, 1 zstd
  place        smallint NOT NULL DEFAULT 0, -- of the bytes: 0 here, 1 in the bucket, 2 in the bucket, to be deleted there
  bytes        bytea,
  created_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (workspace_id, hash),
  CHECK ((bytes IS NOT NULL) = (place = 0))
);
CREATE INDEX archive_objects_here ON archive_objects (workspace_id, created_at) WHERE place = 0;
CREATE INDEX archive_objects_doomed ON archive_objects (workspace_id) WHERE place = 2;
ALTER TABLE archive_objects ALTER COLUMN bytes SET STORAGE EXTERNAL; -- compressed already

CREATE TABLE archive_entries (
  workspace_id uuid NOT NULL,
  lane_id      uuid NOT NULL,
  index        int NOT NULL,       -- place in the client's list
  session_id   uuid NOT NULL,
  hash         bytea NOT NULL,
  role         text NOT NULL,
  tokens       int NOT NULL,
  stored_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (workspace_id, lane_id, index),
  FOREIGN KEY (workspace_id, lane_id) REFERENCES lanes ON DELETE CASCADE,
  FOREIGN KEY (workspace_id, hash) REFERENCES archive_objects
);
CREATE INDEX archive_entries_hash ON archive_entries (workspace_id, hash);

CREATE TABLE exchanges (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  id           uuid NOT NULL,      -- version 7: ordered by time
  at           timestamptz NOT NULL,
  session_id   uuid,
  lane_id      uuid,
  api_key_id   uuid NOT NULL,
  provider     text NOT NULL,
  endpoint     text NOT NULL,
  model        text NOT NULL,
  client       text NOT NULL,
  stream       boolean NOT NULL,
  status       int NOT NULL,
  error_from   text NOT NULL DEFAULT '',
  error_type   text NOT NULL DEFAULT '',
  position     int NOT NULL,
  compression  text NOT NULL,
  tokens_before int NOT NULL,
  tokens_after  int NOT NULL,
  window_tokens int NOT NULL,
  level_0 int NOT NULL, level_1 int NOT NULL, level_2 int NOT NULL, level_3 int NOT NULL,
  input_tokens int NOT NULL, cache_read_tokens int NOT NULL, cache_write_tokens int NOT NULL, output_tokens int NOT NULL,
  cost_microusd bigint NOT NULL,
  net_microusd  bigint NOT NULL,
  overhead_us bigint NOT NULL, ttfb_us bigint NOT NULL, duration_us bigint NOT NULL,
  attempts    int NOT NULL,
  answer      bytea,
  report      jsonb,
  PRIMARY KEY (workspace_id, id)
);
CREATE INDEX exchanges_at ON exchanges (workspace_id, at DESC, id DESC);
CREATE INDEX exchanges_session ON exchanges (workspace_id, session_id, at DESC, id DESC);
CREATE INDEX exchanges_answer ON exchanges (workspace_id, answer) WHERE answer IS NOT NULL;

-- Every table is forced under row-level security. Tenants' rows belong to the
-- workspace that the transaction works for.
-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['workspaces', 'members', 'api_keys', 'provider_keys', 'pipeline_configs',
    'sessions', 'lanes', 'lane_heads', 'epochs', 'archive_objects', 'archive_entries', 'exchanges']
  LOOP
    EXECUTE format('CREATE POLICY tenant ON %I USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()))', t);
  END LOOP;
  FOREACH t IN ARRAY ARRAY['users', 'workspaces', 'members', 'logins', 'api_keys', 'provider_keys', 'pipeline_configs',
    'sessions', 'lanes', 'lane_heads', 'epochs', 'archive_objects', 'archive_entries', 'exchanges']
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO palimpsest_app', t);
  END LOOP;
END $$;
-- +goose StatementEnd

-- People change themselves and their logins only. Somebody who logs in is found by
-- the address typed, and the members of a workspace see each other.
CREATE POLICY self ON users USING (id = (SELECT app_user())) WITH CHECK (id = (SELECT app_user()));
CREATE POLICY typed_email ON users FOR SELECT USING (email = (SELECT app_email()));
CREATE POLICY fellow_members ON users FOR SELECT
  USING (id IN (SELECT m.user_id FROM members m WHERE m.workspace_id = (SELECT app_workspace())));
CREATE POLICY own_logins ON logins USING (user_id = (SELECT app_user())) WITH CHECK (user_id = (SELECT app_user()));

-- Before a tenant is known, people find their own memberships and the proxy the
-- one key whose hash it holds.
CREATE POLICY own_memberships ON members FOR SELECT USING (user_id = (SELECT app_user()));
CREATE POLICY own_workspaces ON workspaces FOR SELECT
  USING (workspace_id IN (SELECT m.workspace_id FROM members m WHERE m.user_id = (SELECT app_user())));
CREATE POLICY presented_key ON api_keys FOR SELECT USING (hash = (SELECT app_api_key()));

-- Who moves archived bytes into the bucket sees which workspaces there are, and
-- then works for one after the other.
CREATE POLICY archive_mover ON workspaces FOR SELECT USING ((SELECT current_setting('app.worker', true)) = 'archive');

GRANT USAGE ON SCHEMA public TO palimpsest_app;

-- +goose Down
-- The role stays: other databases of the cluster may use it.
REVOKE USAGE ON SCHEMA public FROM palimpsest_app;
DROP TABLE exchanges, archive_entries, archive_objects, epochs, lane_heads, lanes, sessions,
  pipeline_configs, provider_keys, api_keys, logins, members, workspaces, users;
DROP FUNCTION app_api_key();
DROP FUNCTION app_email();
DROP FUNCTION app_user();
DROP FUNCTION app_workspace();
