-- +goose Up

-- When somebody last did something in a workspace, to some minutes. Whoever logs in
-- lands where that is latest.
ALTER TABLE members ADD COLUMN seen_at timestamptz; -- NULL: not since there is this column

-- Somebody who belongs to no workspace can log in, too: to create one, or to accept
-- an invitation.
ALTER TABLE logins ALTER COLUMN workspace_id DROP NOT NULL;
ALTER TABLE logins ADD CONSTRAINT logins_person FOREIGN KEY (user_id) REFERENCES users ON DELETE CASCADE;

-- What people were invited with. The link's secret is not kept.
CREATE TABLE invitations (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  id           uuid NOT NULL,
  email        text NOT NULL CHECK (email = lower(email)),
  role         text NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'viewer', 'billing')),
  hash         bytea NOT NULL UNIQUE,    -- SHA-256 of the secret
  invited_by   uuid,                     -- NULL: an API key
  created_at   timestamptz NOT NULL,
  sent_at      timestamptz NOT NULL,     -- when the newest link was made
  expires_at   timestamptz NOT NULL CHECK (expires_at <= sent_at + interval '7 days'),
  accepted_at  timestamptz,
  revoked_at   timestamptz,
  PRIMARY KEY (workspace_id, id)
);
CREATE UNIQUE INDEX invitations_open ON invitations (workspace_id, email) WHERE accepted_at IS NULL AND revoked_at IS NULL;
CREATE POLICY tenant ON invitations
  USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
-- Before a tenant is known, whoever holds a link finds the one invitation it is of.
CREATE POLICY presented_link ON invitations FOR SELECT USING (hash = (SELECT app_token()));
ALTER TABLE invitations ENABLE ROW LEVEL SECURITY;
ALTER TABLE invitations FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE (hash, sent_at, expires_at, accepted_at, revoked_at) ON invitations TO palimpsest_app;

-- +goose Down
DROP TABLE invitations;
DELETE FROM logins WHERE workspace_id IS NULL;
ALTER TABLE logins DROP CONSTRAINT logins_person;
ALTER TABLE logins ALTER COLUMN workspace_id SET NOT NULL;
ALTER TABLE members DROP COLUMN seen_at;
