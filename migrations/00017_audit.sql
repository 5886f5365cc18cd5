-- +goose Up

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
CREATE POLICY tenant ON audit_entries
  USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
ALTER TABLE audit_entries ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_entries FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT ON audit_entries TO palimpsest_app;

-- +goose Down
DROP TABLE audit_entries;
