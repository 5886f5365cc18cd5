-- +goose Up

-- Context windows of models for one workspace: set by people, or learnt from what
-- a provider said of a prompt that was too long.
CREATE TABLE model_windows (
  workspace_id  uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  model         text NOT NULL CHECK (model <> ''),
  window_tokens int NOT NULL CHECK (window_tokens > 0),
  source        text NOT NULL CHECK (source IN ('override', 'learnt')),
  set_by        uuid,                -- NULL: learnt
  set_at        timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (workspace_id, model)
);
CREATE POLICY tenant ON model_windows
  USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
ALTER TABLE model_windows ENABLE ROW LEVEL SECURITY;
ALTER TABLE model_windows FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON model_windows TO palimpsest_app;

-- +goose Down
DROP TABLE model_windows;
