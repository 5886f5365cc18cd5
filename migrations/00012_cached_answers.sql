-- +goose Up

-- Answers that may be given again to the same question. Both keys are keyed hashes.
CREATE TABLE cached_answers (
  workspace_id  uuid NOT NULL,
  key           bytea NOT NULL,              -- of the request but for its formatting
  alike         bytea,                       -- of all ways to ask the same; NULL: the very same request only
  model         text NOT NULL,
  content_type  text NOT NULL,
  question      bytea NOT NULL,              -- what the user said, sealed; empty without alike
  answer        bytea NOT NULL,              -- as the provider sent it, sealed
  size          int NOT NULL CHECK (size > 0), -- of both in the clear
  cost_microusd bigint NOT NULL,             -- of the exchange it comes from
  created_at    timestamptz NOT NULL,
  expires_at    timestamptz NOT NULL,
  PRIMARY KEY (workspace_id, key)
);
CREATE INDEX cached_answers_alike ON cached_answers (workspace_id, alike) WHERE alike IS NOT NULL;
CREATE INDEX cached_answers_age ON cached_answers (workspace_id, created_at);
CREATE POLICY tenant ON cached_answers
  USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
ALTER TABLE cached_answers ENABLE ROW LEVEL SECURITY;
ALTER TABLE cached_answers FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON cached_answers TO palimpsest_app;

-- +goose Down
DROP TABLE cached_answers;
