-- +goose Up

-- What models wrote in place of a lane's first messages, and what was rejected of
-- it. An accepted one is what the lane's next epoch puts into the prompt.
CREATE TABLE summaries (
  workspace_id       uuid NOT NULL,
  lane_id            uuid NOT NULL,
  number             int NOT NULL,               -- attempts of the lane so far
  session_id         uuid NOT NULL,
  covers             int NOT NULL,               -- messages of the lane it stands for
  chain              bytea NOT NULL,             -- link of the history after them
  merged             int NOT NULL DEFAULT 0,     -- what the summary covers that it goes on from; 0: none
  status             text NOT NULL CHECK (status IN ('accepted', 'rejected')),
  reason             text NOT NULL DEFAULT '',   -- why it was rejected
  version            int NOT NULL,               -- of the text's form
  form               text NOT NULL,              -- how the model was asked: own, cached
  model              text NOT NULL,
  text               text NOT NULL DEFAULT '',
  input_tokens       int NOT NULL,
  cache_read_tokens  int NOT NULL,
  cache_write_tokens int NOT NULL,
  output_tokens      int NOT NULL,
  cost_microusd      bigint NOT NULL,
  created_at         timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (workspace_id, lane_id, number),
  FOREIGN KEY (workspace_id, lane_id) REFERENCES lanes ON DELETE CASCADE,
  CHECK ((status = 'rejected') = (reason <> ''))
);
CREATE POLICY tenant ON summaries
  USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
ALTER TABLE summaries ENABLE ROW LEVEL SECURITY;
ALTER TABLE summaries FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON summaries TO palimpsest_app;

-- +goose Down
DROP TABLE summaries;
