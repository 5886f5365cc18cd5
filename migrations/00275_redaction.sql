-- +goose Up

-- What a workspace has replaced in what was said before that is stored: kinds of personal data,
-- separated by commas, and names of people, one a line.
ALTER TABLE workspaces
  ADD COLUMN redact       text NOT NULL DEFAULT '',
  ADD COLUMN redact_names text NOT NULL DEFAULT '';

-- How often each kind was replaced.
CREATE TABLE redaction_counts (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  kind         text NOT NULL,
  found        bigint NOT NULL,
  PRIMARY KEY (workspace_id, kind)
);
-- +goose StatementBegin
DO $$
BEGIN
  CREATE POLICY tenant ON redaction_counts USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
  ALTER TABLE redaction_counts ENABLE ROW LEVEL SECURITY;
  ALTER TABLE redaction_counts FORCE ROW LEVEL SECURITY;
END $$;
-- +goose StatementEnd
GRANT SELECT, INSERT, UPDATE ON redaction_counts TO palimpsest_app;

-- +goose Down
DROP TABLE redaction_counts;
ALTER TABLE workspaces DROP COLUMN redact, DROP COLUMN redact_names;
