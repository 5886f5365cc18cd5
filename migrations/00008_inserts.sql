-- +goose Up

-- Text that modules have put into a lane's prompt. It stays there with the same
-- bytes until an epoch folds the message it stands in.
CREATE TABLE lane_inserts (
  workspace_id uuid NOT NULL,
  lane_id      uuid NOT NULL,
  number       int NOT NULL CHECK (number > 0),
  message      int NOT NULL CHECK (message >= -1), -- place in the client's list; -1: behind the system prompt
  chain        bytea NOT NULL,                     -- link of the history after that message
  module       text NOT NULL,
  text         text NOT NULL,
  tokens       int NOT NULL,
  items        text[] NOT NULL DEFAULT '{}',       -- what the text holds: pointers, pattern ids …
  put_at       timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (workspace_id, lane_id, number),
  FOREIGN KEY (workspace_id, lane_id) REFERENCES lanes ON DELETE CASCADE
);
CREATE POLICY tenant ON lane_inserts
  USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
ALTER TABLE lane_inserts ENABLE ROW LEVEL SECURITY;
ALTER TABLE lane_inserts FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON lane_inserts TO palimpsest_app;

-- The newest insert that a lane took over from the one it forked from.
ALTER TABLE lanes ADD COLUMN fork_insert int NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE lanes DROP COLUMN fork_insert;
DROP TABLE lane_inserts;
