-- +goose Up

-- What is kept of a workspace's end users beside their sessions. Only of those whose own id is shown,
-- or who have been erased.
CREATE TABLE end_users (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  id           text NOT NULL,  -- session.EndUserID, the hash in sessions.end_user
  name         bytea,          -- the id as the application sends it, sealed; NULL where only the hash is kept
  erased_at    timestamptz,    -- of requests before this, nothing but figures is recorded; NULL if never erased
  PRIMARY KEY (workspace_id, id)
);
CREATE POLICY tenant ON end_users USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
ALTER TABLE end_users ENABLE ROW LEVEL SECURITY;
ALTER TABLE end_users FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE ON end_users TO palimpsest_app;

-- Whether end users are shown by a hash of their id, or by the id itself.
ALTER TABLE workspaces ADD COLUMN end_user_ids text NOT NULL DEFAULT 'hashed';

-- Whose request it was: the hash. It is found by exchange_tags, with the tag '@user=' and the hash, which no
-- client can give.
ALTER TABLE exchanges ADD COLUMN end_user text;
GRANT UPDATE (end_user) ON exchanges TO palimpsest_app;

-- Whose question it answered; NULL if the application did not say.
ALTER TABLE cached_answers ADD COLUMN end_user text;

-- +goose Down
ALTER TABLE cached_answers DROP COLUMN end_user;
REVOKE UPDATE (end_user) ON exchanges FROM palimpsest_app;
ALTER TABLE exchanges DROP COLUMN end_user;
ALTER TABLE workspaces DROP COLUMN end_user_ids;
DROP TABLE end_users;
