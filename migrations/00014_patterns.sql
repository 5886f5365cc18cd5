-- +goose Up

-- What was learnt in a workspace's sessions: fixes, conventions, standing orders.
CREATE TABLE patterns (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  id           uuid NOT NULL,
  kind         text NOT NULL CHECK (kind IN ('fix', 'convention', 'directive')),
  text         text NOT NULL,
  words        text NOT NULL,                   -- of the text, normalised: a kind has each once
  terms        text[] NOT NULL DEFAULT '{}',    -- when it is relevant: words of what was typed,
  paths        text[] NOT NULL DEFAULT '{}',    -- files,
  signatures   text[] NOT NULL DEFAULT '{}',    -- errors,
  always       boolean NOT NULL DEFAULT false,  -- or every conversation
  status       text NOT NULL CHECK (status IN ('seen', 'candidate', 'approved', 'disabled', 'rejected')),
  reason       text NOT NULL DEFAULT '',        -- of a status that nobody decided
  source       text NOT NULL CHECK (source IN ('mined', 'typed')),
  needs_sessions int NOT NULL DEFAULT 1,        -- in which it must have been met to become a candidate,
  needs_messages int NOT NULL DEFAULT 1,        -- and in how many different messages
  version      int NOT NULL DEFAULT 1,
  created_at   timestamptz NOT NULL,
  created_by   uuid,
  edited_at    timestamptz NOT NULL,
  edited_by    uuid,
  last_seen    timestamptz NOT NULL,
  PRIMARY KEY (workspace_id, id),
  UNIQUE (workspace_id, kind, words)
);
CREATE POLICY tenant ON patterns
  USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
ALTER TABLE patterns ENABLE ROW LEVEL SECURITY;
ALTER TABLE patterns FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON patterns TO palimpsest_app;

-- Where a pattern was met.
CREATE TABLE pattern_evidence (
  workspace_id uuid NOT NULL,
  pattern_id   uuid NOT NULL,
  lane_id      uuid NOT NULL,
  message      int NOT NULL,
  session_id   uuid NOT NULL,
  hash         bytea NOT NULL,       -- of the message: one that was sent in two sessions counts once
  at           timestamptz NOT NULL,
  PRIMARY KEY (workspace_id, pattern_id, lane_id, message),
  FOREIGN KEY (workspace_id, pattern_id) REFERENCES patterns ON DELETE CASCADE,
  FOREIGN KEY (workspace_id, lane_id) REFERENCES lanes ON DELETE CASCADE
);
CREATE INDEX pattern_evidence_lane ON pattern_evidence (workspace_id, lane_id);
CREATE POLICY tenant ON pattern_evidence
  USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
ALTER TABLE pattern_evidence ENABLE ROW LEVEL SECURITY;
ALTER TABLE pattern_evidence FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON pattern_evidence TO palimpsest_app;

-- The lanes that a pattern was put into, and whether it helped.
CREATE TABLE pattern_uses (
  workspace_id uuid NOT NULL,
  pattern_id   uuid NOT NULL,
  lane_id      uuid NOT NULL,
  outcome      text NOT NULL CHECK (outcome IN ('success', 'failure')),
  at           timestamptz NOT NULL,
  PRIMARY KEY (workspace_id, pattern_id, lane_id),
  FOREIGN KEY (workspace_id, pattern_id) REFERENCES patterns ON DELETE CASCADE,
  FOREIGN KEY (workspace_id, lane_id) REFERENCES lanes ON DELETE CASCADE
);
CREATE INDEX pattern_uses_lane ON pattern_uses (workspace_id, lane_id);
CREATE POLICY tenant ON pattern_uses
  USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
ALTER TABLE pattern_uses ENABLE ROW LEVEL SECURITY;
ALTER TABLE pattern_uses FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON pattern_uses TO palimpsest_app;

-- The lanes that have been read for patterns, and as of when.
CREATE TABLE pattern_lanes (
  workspace_id uuid NOT NULL,
  lane_id      uuid NOT NULL,
  last_at      timestamptz NOT NULL, -- the lane's own when it was read
  PRIMARY KEY (workspace_id, lane_id),
  FOREIGN KEY (workspace_id, lane_id) REFERENCES lanes ON DELETE CASCADE
);
CREATE POLICY tenant ON pattern_lanes
  USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
ALTER TABLE pattern_lanes ENABLE ROW LEVEL SECURITY;
ALTER TABLE pattern_lanes FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON pattern_lanes TO palimpsest_app;

-- What reads sessions for patterns goes from workspace to workspace.
CREATE POLICY pattern_miner ON workspaces FOR SELECT USING ((SELECT current_setting('app.worker', true)) = 'patterns');

-- +goose Down
DROP POLICY pattern_miner ON workspaces;
DROP TABLE pattern_lanes;
DROP TABLE pattern_uses;
DROP TABLE pattern_evidence;
DROP TABLE patterns;
