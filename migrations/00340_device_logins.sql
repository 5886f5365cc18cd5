-- +goose Up

-- Terminals that ask to log in (RFC 8628). Neither code is kept. A row belongs to no workspace
-- until a person allows it, so whoever presents one of its codes sees it, and nobody else does.
CREATE TABLE device_logins (
  device_hash   bytea PRIMARY KEY,     -- HMAC-SHA256 of the device code, which the terminal has
  code_hash     bytea NOT NULL UNIQUE, -- HMAC-SHA256 of the user code, which the person types
  machine       text NOT NULL CHECK (char_length(machine) BETWEEN 1 AND 80), -- as the terminal calls it
  asked_from    text NOT NULL,         -- the terminal's address
  asked_at      timestamptz NOT NULL,
  expires_at    timestamptz NOT NULL CHECK (expires_at <= asked_at + interval '10 minutes'),
  pause_seconds int NOT NULL,          -- between two questions of the terminal
  polled_at     timestamptz,           -- when it last asked; NULL: never
  denied        boolean NOT NULL DEFAULT false,
  user_id       uuid REFERENCES users ON DELETE CASCADE,      -- who allowed it; NULL: nobody yet
  workspace_id  uuid REFERENCES workspaces ON DELETE CASCADE, -- for which workspace
  workspace_name text NOT NULL DEFAULT '',
  email         text NOT NULL DEFAULT '',                     -- of the person, as the audit log names them
  key_expires   timestamptz,           -- when the key is to expire; NULL: never
  used_at       timestamptz,           -- when the key was made; NULL: not yet
  CHECK ((user_id IS NULL) = (workspace_id IS NULL))
);
CREATE INDEX device_logins_expired ON device_logins (expires_at);
CREATE INDEX device_logins_user ON device_logins (user_id);
CREATE INDEX device_logins_workspace ON device_logins (workspace_id);

-- +goose StatementBegin
DO $$
BEGIN
  -- The next terminal that asks removes what nobody can use anymore.
  CREATE POLICY presented ON device_logins
    USING (device_hash = (SELECT app_token()) OR code_hash = (SELECT app_token()) OR expires_at < now() - interval '1 hour')
    WITH CHECK (device_hash = (SELECT app_token()) OR code_hash = (SELECT app_token()) OR expires_at < now() - interval '1 hour');
  ALTER TABLE device_logins ENABLE ROW LEVEL SECURITY;
  ALTER TABLE device_logins FORCE ROW LEVEL SECURITY;
END $$;
-- +goose StatementEnd
GRANT SELECT, INSERT, UPDATE, DELETE ON device_logins TO palimpsest_app;

-- +goose Down
DROP TABLE device_logins;
