-- +goose Up

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
  hash    bytea NOT NULL,                   -- SHA-256
  used_at timestamptz NOT NULL,
  PRIMARY KEY (user_id, hash)
);

CREATE POLICY own ON passkeys USING (user_id = (SELECT app_user())) WITH CHECK (user_id = (SELECT app_user()));
CREATE POLICY own ON passkey_challenges USING (user_id = (SELECT app_user())) WITH CHECK (user_id = (SELECT app_user()));
ALTER TABLE passkeys ENABLE ROW LEVEL SECURITY;
ALTER TABLE passkeys FORCE ROW LEVEL SECURITY;
ALTER TABLE passkey_challenges ENABLE ROW LEVEL SECURITY;
ALTER TABLE passkey_challenges FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, DELETE, UPDATE (name, sign_count, backed_up, used_at, copied_at) ON passkeys TO palimpsest_app;
GRANT SELECT, INSERT, DELETE ON passkey_challenges TO palimpsest_app;

-- +goose Down
DROP TABLE passkeys, passkey_challenges;
