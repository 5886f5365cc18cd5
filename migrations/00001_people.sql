-- +goose Up

-- Who the database works for, people, and the workspaces that they belong to.

-- Requests connect as a login that is a member of this role. It owns nothing, so
-- row-level security binds it.
-- +goose StatementBegin
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'palimpsest_app') THEN
    CREATE ROLE palimpsest_app NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
  END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; -- another database of the cluster made it just now
END $$;
-- +goose StatementEnd

-- Background jobs and operators' pages connect as a login that is also a member of this
-- role, which reaches across workspaces.
-- +goose StatementBegin
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'palimpsest_worker') THEN
    CREATE ROLE palimpsest_worker NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
  END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; -- another database of the cluster made it just now
END $$;
-- +goose StatementEnd
GRANT USAGE ON SCHEMA public TO palimpsest_app, palimpsest_worker;

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
-- +goose StatementBegin
CREATE FUNCTION app_token() RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT decode(NULLIF(current_setting('app.token', true), ''), 'hex') $$;
-- +goose StatementEnd

-- People. They stand outside the tenants: one person may belong to several.
CREATE TABLE users (
  id            uuid PRIMARY KEY,
  email         text NOT NULL UNIQUE CHECK (email = lower(email)),
  password_hash text NOT NULL,
  created_at    timestamptz NOT NULL DEFAULT now(),
  verified_at   timestamptz,
  -- People who signed up where sign-ups are answered by mail log in once they have opened the
  -- link: or who may log in would tell whose address was known.
  must_verify   boolean NOT NULL DEFAULT false
);

-- Tenants.
CREATE TABLE workspaces (
  workspace_id   uuid PRIMARY KEY,
  name           text NOT NULL,
  created_at     timestamptz NOT NULL DEFAULT now(),
  -- After how many days without a request a session is deleted.
  retention_days int CHECK (retention_days > 0), -- NULL: never
  -- What a workspace says of its data. Whose sessions' text each role may read: of
  -- all sessions, of those of one's own API keys, or of none.
  time_zone      text NOT NULL DEFAULT 'UTC',
  managers_read  text NOT NULL DEFAULT 'all' CHECK (managers_read IN ('all', 'own')),
  members_read   text NOT NULL DEFAULT 'own' CHECK (members_read IN ('all', 'own')),
  viewers_read   text NOT NULL DEFAULT 'none' CHECK (viewers_read IN ('all', 'none')),
  no_store       boolean NOT NULL DEFAULT false, -- nothing of its exchanges is kept but figures
  deleted_at     timestamptz                     -- nobody reaches it any more; a job removes the rest
);
CREATE INDEX workspaces_deleted ON workspaces (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE members (
  workspace_id    uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  user_id         uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  role            text NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'viewer', 'billing')),
  created_at      timestamptz NOT NULL DEFAULT now(),
  -- When somebody last did something in a workspace, to some minutes. Whoever logs in
  -- lands where that is latest.
  seen_at         timestamptz, -- NULL: never
  -- As whom a workspace's identity provider knows a member. NULL: it has never been connected
  -- with the account.
  sign_on_issuer  text,
  sign_on_subject text,
  -- The columns that a person has hidden, by list: {"sessions": ["reach"]}. They are part of the membership, and end with it.
  hidden_columns  jsonb NOT NULL DEFAULT '{}' CHECK (octet_length(hidden_columns::text) <= 4096),
  PRIMARY KEY (workspace_id, user_id),
  CHECK ((sign_on_issuer IS NULL) = (sign_on_subject IS NULL))
);
CREATE INDEX members_user ON members (user_id);

CREATE TABLE logins (
  id                uuid PRIMARY KEY,
  user_id           uuid NOT NULL,
  workspace_id      uuid,        -- the workspace the login works in; NULL: none yet
  user_agent        text NOT NULL DEFAULT '',
  created_at        timestamptz NOT NULL DEFAULT now(),
  expires_at        timestamptz NOT NULL,
  revoked_at        timestamptz,
  last_seen_at      timestamptz NOT NULL DEFAULT now(),
  -- A login that came through a workspace's single sign-on opens that workspace only. NULL:
  -- the person proved who they are here, and it opens all of theirs.
  sign_on_workspace uuid,
  -- The place (IPv4 address, or IPv6 /64 network) that a person logged in from: an attack
  -- on their account from elsewhere does not slow them down there. '' where it is not known.
  place             text NOT NULL DEFAULT '',
  FOREIGN KEY (workspace_id, user_id) REFERENCES members ON DELETE CASCADE,
  CONSTRAINT logins_person FOREIGN KEY (user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX logins_user ON logins (user_id);
CREATE INDEX logins_member ON logins (workspace_id, user_id);

-- What a link in a mail proves, once. The link's secret is not kept.
CREATE TABLE user_tokens (
  hash       bytea PRIMARY KEY, -- HMAC-SHA256 of the secret
  kind       text NOT NULL CHECK (kind IN ('reset', 'verify', 'email')),
  user_id    uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  email      text NOT NULL,     -- the address it was sent to
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  used_at    timestamptz
);
CREATE INDEX user_tokens_user ON user_tokens (user_id);

-- What people were invited with. The link's secret is not kept.
CREATE TABLE invitations (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  id           uuid NOT NULL,
  email        text NOT NULL CHECK (email = lower(email)),
  role         text NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'viewer', 'billing')),
  hash         bytea NOT NULL UNIQUE, -- SHA-256 of the secret
  invited_by   uuid,                  -- NULL: an API key
  created_at   timestamptz NOT NULL,
  sent_at      timestamptz NOT NULL,  -- when the newest link was made
  expires_at   timestamptz NOT NULL CHECK (expires_at <= sent_at + interval '7 days'),
  accepted_at  timestamptz,
  revoked_at   timestamptz,
  PRIMARY KEY (workspace_id, id)
);
CREATE UNIQUE INDEX invitations_open ON invitations (workspace_id, email) WHERE accepted_at IS NULL AND revoked_at IS NULL;

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
  hash    bytea NOT NULL, -- SHA-256 of person and code
  PRIMARY KEY (user_id, hash)
);

-- The passkeys with which people log in (Web Authentication, level 3). What is kept of
-- one proves nothing to anybody: its private half never leaves the authenticator.
CREATE TABLE passkeys (
  user_id         uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  id              uuid NOT NULL,
  name            text NOT NULL,
  credential      bytea NOT NULL UNIQUE,    -- what the authenticator calls it
  public_key      bytea NOT NULL,           -- COSE
  sign_count      bigint NOT NULL,          -- highest that was seen; 0: the authenticator counts nothing
  transports      text NOT NULL DEFAULT '', -- comma-separated
  backup_eligible boolean NOT NULL,         -- may lie on several devices; never changes
  backed_up       boolean NOT NULL,
  created_at      timestamptz NOT NULL,
  used_at         timestamptz,
  copied_at       timestamptz,              -- when the count told of a copy; it logs nobody in since
  PRIMARY KEY (user_id, id)
);

-- The challenges that a person's passkeys have answered, so that none is good twice.
CREATE TABLE passkey_challenges (
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  hash    bytea NOT NULL, -- SHA-256
  used_at timestamptz NOT NULL,
  PRIMARY KEY (user_id, hash)
);

-- Where a workspace's people prove who they are (OpenID Connect).
CREATE TABLE sign_ons (
  workspace_id uuid PRIMARY KEY REFERENCES workspaces ON DELETE CASCADE,
  issuer       text NOT NULL,
  client_id    text NOT NULL,
  sealed       bytea NOT NULL,                       -- client secret, for this workspace, issuer and client
  role         text NOT NULL CHECK (role IN ('member', 'viewer')), -- of people it brings in
  saved_at     timestamptz NOT NULL DEFAULT now()
);

-- The domains of addresses that a workspace says are its own. One counts once proven, and
-- for one workspace only.
CREATE TABLE sign_on_domains (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  domain       text NOT NULL CHECK (domain = lower(domain)),
  token        text NOT NULL, -- to be found in the domain's TXT records
  created_at   timestamptz NOT NULL DEFAULT now(),
  proven_at    timestamptz,
  PRIMARY KEY (workspace_id, domain)
);
CREATE UNIQUE INDEX sign_on_domains_proven ON sign_on_domains (domain) WHERE proven_at IS NOT NULL;

-- What people narrow lists to, under names of their own. Each is one member's: it ends
-- with their membership.
CREATE TABLE views (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  id           uuid NOT NULL,
  user_id      uuid NOT NULL,
  list         text NOT NULL CHECK (list IN ('sessions', 'requests')),
  name         text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 60),
  query        text NOT NULL CHECK (octet_length(query) <= 4096), -- filters, as an address has them
  saved_at     timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (workspace_id, id),
  UNIQUE (workspace_id, user_id, list, name),
  FOREIGN KEY (workspace_id, user_id) REFERENCES members ON DELETE CASCADE
);

-- Mails that wait to be sent. They belong to nobody's workspace: the product puts
-- one in within the transaction that it speaks of, and takes it out once it is sent.
CREATE TABLE mails (
  id         uuid PRIMARY KEY,                       -- version 7: ordered by time
  recipient  text NOT NULL,
  subject    text NOT NULL,
  body       text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  attempts   int NOT NULL DEFAULT 0,
  next_at    timestamptz NOT NULL DEFAULT clock_timestamp(), -- not to be tried before
  -- The text of a mail that waits holds links that open accounts: it is sealed. NULL: the
  -- body holds it.
  sealed     bytea
);
CREATE INDEX mails_next ON mails (next_at);

-- What somebody asked for by an address, before anybody looked whether it is known:
-- whoever asks cannot tell from the answer. The worker looks, and takes it out.
CREATE TABLE account_requests (
  id            uuid PRIMARY KEY,
  kind          text NOT NULL CHECK (kind IN ('signup', 'reset', 'verify')),
  email         text NOT NULL,
  password_hash text NOT NULL DEFAULT '', -- of a sign-up
  workspace     text NOT NULL DEFAULT '', -- name, of a sign-up
  address       text NOT NULL DEFAULT '', -- of the client
  created_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Every table is forced under row-level security. Tenants' rows belong to the
-- workspace that the transaction works for.
-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['workspaces', 'members', 'invitations', 'sign_ons', 'sign_on_domains', 'views'] LOOP
    EXECUTE format('CREATE POLICY tenant ON %I USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()))', t);
  END LOOP;
  FOREACH t IN ARRAY ARRAY['users', 'workspaces', 'members', 'logins', 'user_tokens', 'invitations', 'second_factors',
    'recovery_codes', 'passkeys', 'passkey_challenges', 'sign_ons', 'sign_on_domains', 'views', 'mails',
    'account_requests'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
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
CREATE POLICY own_tokens ON user_tokens USING (user_id = (SELECT app_user())) WITH CHECK (user_id = (SELECT app_user()));
CREATE POLICY own ON second_factors USING (user_id = (SELECT app_user())) WITH CHECK (user_id = (SELECT app_user()));
CREATE POLICY own ON recovery_codes USING (user_id = (SELECT app_user())) WITH CHECK (user_id = (SELECT app_user()));
CREATE POLICY own ON passkeys USING (user_id = (SELECT app_user())) WITH CHECK (user_id = (SELECT app_user()));
CREATE POLICY own ON passkey_challenges USING (user_id = (SELECT app_user())) WITH CHECK (user_id = (SELECT app_user()));

-- Before a tenant is known, people find their own memberships, whoever holds a link finds
-- what it is of, and whoever logs in finds whose the domain of their address is.
CREATE POLICY own_memberships ON members FOR SELECT USING (user_id = (SELECT app_user()));
CREATE POLICY own_workspaces ON workspaces FOR SELECT
  USING (workspace_id IN (SELECT m.workspace_id FROM members m WHERE m.user_id = (SELECT app_user())));
CREATE POLICY presented_token ON user_tokens FOR SELECT USING (hash = (SELECT app_token()));
CREATE POLICY presented_link ON invitations FOR SELECT USING (hash = (SELECT app_token()));
CREATE POLICY presented_domain ON sign_on_domains FOR SELECT
  USING (proven_at IS NOT NULL AND domain = (SELECT current_setting('app.domain', true)));

-- Jobs see which workspaces there are, and who has a second factor, which a new master key
-- seals anew. Requests queue work for them, but cannot read it.
CREATE POLICY worker ON workspaces FOR SELECT TO palimpsest_worker USING (true);
CREATE POLICY worker ON second_factors FOR SELECT TO palimpsest_worker USING (true);
CREATE POLICY worker ON mails TO palimpsest_worker USING (true) WITH CHECK (true);
CREATE POLICY queue ON mails FOR INSERT TO palimpsest_app WITH CHECK (true);
CREATE POLICY worker ON account_requests TO palimpsest_worker USING (true) WITH CHECK (true);
CREATE POLICY queue ON account_requests FOR INSERT TO palimpsest_app WITH CHECK (true);

-- The app login has the rights that a statement of the program needs, and no others. Most
-- rows are deleted with their workspace, session or lane, by foreign keys, which need no
-- right of the login.
GRANT SELECT, INSERT, UPDATE (email, password_hash, verified_at), DELETE ON users TO palimpsest_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON workspaces, members, logins, user_tokens TO palimpsest_app;
GRANT SELECT, INSERT, UPDATE (hash, sent_at, expires_at, accepted_at, revoked_at) ON invitations TO palimpsest_app;
GRANT SELECT, INSERT, UPDATE (sealed, created_at, confirmed_at, used_at, last_step), DELETE ON second_factors TO palimpsest_app;
GRANT SELECT, INSERT, DELETE ON recovery_codes, passkey_challenges TO palimpsest_app;
GRANT SELECT, INSERT, UPDATE (name, sign_count, backed_up, used_at, copied_at), DELETE ON passkeys TO palimpsest_app;
GRANT SELECT, INSERT, UPDATE (issuer, client_id, sealed, role, saved_at), DELETE ON sign_ons TO palimpsest_app;
GRANT SELECT, INSERT, UPDATE (proven_at), DELETE ON sign_on_domains TO palimpsest_app;
GRANT SELECT, INSERT, UPDATE (query, saved_at), DELETE ON views TO palimpsest_app;
GRANT INSERT ON mails, account_requests TO palimpsest_app;
GRANT SELECT ON workspaces, second_factors TO palimpsest_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON mails TO palimpsest_worker;
GRANT SELECT, INSERT, DELETE ON account_requests TO palimpsest_worker;

-- +goose Down
-- The roles stay, because other databases of the cluster may use them.
REVOKE USAGE ON SCHEMA public FROM palimpsest_app, palimpsest_worker;
DROP TABLE account_requests, mails, views, sign_on_domains, sign_ons, passkey_challenges, passkeys, recovery_codes, second_factors,
    invitations, user_tokens, logins, members, workspaces, users;
DROP FUNCTION app_token(), app_api_key(), app_email(), app_user(), app_workspace();
