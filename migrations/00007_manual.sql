-- +goose Up

-- Messages whose turns people want to stay in the prompt as they are.
CREATE TABLE lane_pins (
  workspace_id uuid NOT NULL,
  lane_id      uuid NOT NULL,
  message      int NOT NULL CHECK (message >= 0), -- place in the client's list
  pinned_by    uuid NOT NULL,
  pinned_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (workspace_id, lane_id, message),
  FOREIGN KEY (workspace_id, lane_id) REFERENCES lanes ON DELETE CASCADE
);
CREATE POLICY tenant ON lane_pins
  USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
ALTER TABLE lane_pins ENABLE ROW LEVEL SECURITY;
ALTER TABLE lane_pins FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON lane_pins TO palimpsest_app;

-- A compaction that somebody asked for; it waits for the lane's next request.
ALTER TABLE lanes
  ADD COLUMN asked_at           timestamptz, -- NULL: nobody has
  ADD COLUMN asked_by           uuid,
  ADD COLUMN asked_instructions text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE lanes DROP COLUMN asked_at, DROP COLUMN asked_by, DROP COLUMN asked_instructions;
DROP TABLE lane_pins;
