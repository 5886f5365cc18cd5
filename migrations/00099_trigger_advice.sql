-- +goose Up

-- What the other trigger of compaction would have come to in a workspace's recent sessions,
-- beside the one that is set, as the background job replayed them last. Money is in millionths
-- of a US dollar, tokens are the models'.
CREATE TABLE trigger_advice (
  workspace_id   uuid PRIMARY KEY REFERENCES workspaces ON DELETE CASCADE,
  made_at        timestamptz NOT NULL,
  since          timestamptz NOT NULL,            -- of sessions that were active since
  trigger        text NOT NULL CHECK (trigger IN ('window', 'break-even')), -- that was set
  sessions       int NOT NULL,                    -- that were replayed
  has_more       boolean NOT NULL,                -- there were more
  received       bigint NOT NULL,                 -- tokens of their prompts
  verbatim       bigint NOT NULL,                 -- of them, those that went out word for word
  other_verbatim bigint NOT NULL,                 -- and would have with the other trigger
  cost           bigint NOT NULL,                 -- of their prompts
  other_cost     bigint NOT NULL,
  dismissed_at   timestamptz                      -- someone has read it
);
CREATE POLICY tenant ON trigger_advice
  USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
ALTER TABLE trigger_advice ENABLE ROW LEVEL SECURITY;
ALTER TABLE trigger_advice FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE ON trigger_advice TO palimpsest_app;

-- +goose Down
DROP TABLE trigger_advice;
