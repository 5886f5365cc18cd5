-- +goose Up

-- What was learnt in sessions, and answers that are kept.

-- What was learnt in a workspace's sessions: fixes, conventions, standing orders.
CREATE TABLE patterns (
  workspace_id   uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  id             uuid NOT NULL,
  kind           text NOT NULL CHECK (kind IN ('fix', 'convention', 'directive')),
  text           text NOT NULL,
  words          text NOT NULL,                  -- of the text, normalized: a kind has each once
  terms          text[] NOT NULL DEFAULT '{}',   -- when it is relevant: words of what was typed,
  paths          text[] NOT NULL DEFAULT '{}',   -- files,
  signatures     text[] NOT NULL DEFAULT '{}',   -- errors,
  always         boolean NOT NULL DEFAULT false, -- or every conversation
  status         text NOT NULL CHECK (status IN ('seen', 'candidate', 'approved', 'disabled', 'rejected')),
  reason         text NOT NULL DEFAULT '',       -- of a status that nobody decided
  source         text NOT NULL CHECK (source IN ('mined', 'typed')),
  needs_sessions int NOT NULL DEFAULT 1,         -- in which it must have been met to become a candidate,
  needs_messages int NOT NULL DEFAULT 1,         -- and in how many different messages
  version        int NOT NULL DEFAULT 1,
  created_at     timestamptz NOT NULL,
  created_by     uuid,
  edited_at      timestamptz NOT NULL,
  edited_by      uuid,
  last_seen      timestamptz NOT NULL,
  PRIMARY KEY (workspace_id, id),
  UNIQUE (workspace_id, kind, words)
);

-- Where a pattern was met.
CREATE TABLE pattern_evidence (
  workspace_id uuid NOT NULL,
  pattern_id   uuid NOT NULL,
  lane_id      uuid NOT NULL,
  message      int NOT NULL,
  session_id   uuid NOT NULL,
  hash         bytea NOT NULL, -- of the message: one that was sent in two sessions counts once
  at           timestamptz NOT NULL,
  PRIMARY KEY (workspace_id, pattern_id, lane_id, message),
  FOREIGN KEY (workspace_id, pattern_id) REFERENCES patterns ON DELETE CASCADE,
  FOREIGN KEY (workspace_id, lane_id) REFERENCES lanes ON DELETE CASCADE
);
CREATE INDEX pattern_evidence_lane ON pattern_evidence (workspace_id, lane_id);

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

-- The lanes that have been read for patterns, and as of when.
CREATE TABLE pattern_lanes (
  workspace_id uuid NOT NULL,
  lane_id      uuid NOT NULL,
  last_at      timestamptz NOT NULL, -- the lane's own when it was read
  PRIMARY KEY (workspace_id, lane_id),
  FOREIGN KEY (workspace_id, lane_id) REFERENCES lanes ON DELETE CASCADE
);

-- Answers that may be given again to the same question. Both keys are keyed hashes.
CREATE TABLE cached_answers (
  workspace_id  uuid NOT NULL,
  key           bytea NOT NULL,                -- of the request but for its formatting
  alike         bytea,                         -- of all ways to ask the same; NULL: the very same request only
  model         text NOT NULL,
  content_type  text NOT NULL,
  question      bytea NOT NULL,                -- what the user said, sealed; empty without alike
  answer        bytea NOT NULL,                -- as the provider sent it, sealed
  size          int NOT NULL CHECK (size > 0), -- of both in the clear
  cost_microusd bigint NOT NULL,               -- of the exchange it comes from
  created_at    timestamptz NOT NULL,
  expires_at    timestamptz NOT NULL,
  PRIMARY KEY (workspace_id, key),
  FOREIGN KEY (workspace_id) REFERENCES workspaces ON DELETE CASCADE
);
CREATE INDEX cached_answers_alike ON cached_answers (workspace_id, alike) WHERE alike IS NOT NULL;
CREATE INDEX cached_answers_age ON cached_answers (workspace_id, created_at);

ALTER TABLE cached_answers ALTER workspace_id SET STATISTICS 0; -- read by exact keys, as lane_heads are

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['patterns', 'pattern_evidence', 'pattern_uses', 'pattern_lanes', 'cached_answers'] LOOP
    EXECUTE format('CREATE POLICY tenant ON %I USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()))', t);
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
  END LOOP;
END $$;
-- +goose StatementEnd

GRANT SELECT, INSERT, UPDATE, DELETE ON patterns, pattern_evidence, cached_answers TO palimpsest_app;
GRANT SELECT, INSERT, UPDATE ON pattern_uses, pattern_lanes TO palimpsest_app;

-- +goose Down
DROP TABLE cached_answers, pattern_lanes, pattern_uses, pattern_evidence, patterns;
