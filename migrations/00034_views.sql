-- +goose Up

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
CREATE POLICY tenant ON views
  USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
ALTER TABLE views ENABLE ROW LEVEL SECURITY;
ALTER TABLE views FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, DELETE, UPDATE (query, saved_at) ON views TO palimpsest_app;

-- +goose Down
DROP TABLE views;
