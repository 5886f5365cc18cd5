-- +goose Up

-- The origins of pages that may read answers in a browser: a workspace's own, one a line. Those of
-- an API key lie in its limits. The version before does not look at them.
ALTER TABLE workspaces ADD COLUMN IF NOT EXISTS browser_origins text NOT NULL DEFAULT '';

-- All of them, for preflights, which carry no key.
CREATE TABLE browser_origins (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  origin       text NOT NULL,
  PRIMARY KEY (workspace_id, origin)
);
CREATE INDEX browser_origins_asked ON browser_origins (origin);

-- The origin that a preflight names.
-- +goose StatementBegin
CREATE FUNCTION app_origin() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT NULLIF(current_setting('app.origin', true), '') $$;
-- +goose StatementEnd

-- +goose StatementBegin
DO $$
BEGIN
  CREATE POLICY tenant ON browser_origins USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
  CREATE POLICY asked_origin ON browser_origins FOR SELECT USING (origin = (SELECT app_origin()));
  ALTER TABLE browser_origins ENABLE ROW LEVEL SECURITY;
  ALTER TABLE browser_origins FORCE ROW LEVEL SECURITY;
END $$;
-- +goose StatementEnd
GRANT SELECT, INSERT, DELETE ON browser_origins TO palimpsest_app;

-- +goose Down
DROP TABLE browser_origins;
DROP FUNCTION app_origin();
ALTER TABLE workspaces DROP COLUMN IF EXISTS browser_origins;
