-- +goose Up

-- Objects of the bucket: each has many originals of a workspace, one behind the other.
CREATE TABLE archive_segments (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  id           uuid NOT NULL,
  state        smallint NOT NULL DEFAULT 0, -- 0 being written, 1 read from, 2 to be deleted in the bucket
  bytes        int NOT NULL DEFAULT 0,      -- of all of it
  live         int NOT NULL DEFAULT 0,      -- of those, of originals that are still in it
  created_at   timestamptz NOT NULL DEFAULT now(),
  dead_since   timestamptz,                 -- since when there are others; NULL: there are none
  retired_at   timestamptz,                 -- since when it is to be deleted
  PRIMARY KEY (workspace_id, id)
);
CREATE INDEX archive_segments_dead ON archive_segments (workspace_id) WHERE state <> 1 OR dead_since IS NOT NULL;
CREATE POLICY tenant ON archive_segments USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
ALTER TABLE archive_segments ENABLE ROW LEVEL SECURITY;
ALTER TABLE archive_segments FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON archive_segments TO palimpsest_app;

-- Until when a process moves the originals of a workspace, so that others take others.
CREATE TABLE archive_movers (
  workspace_id uuid PRIMARY KEY REFERENCES workspaces ON DELETE CASCADE,
  until        timestamptz NOT NULL
);
CREATE POLICY tenant ON archive_movers USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
ALTER TABLE archive_movers ENABLE ROW LEVEL SECURITY;
ALTER TABLE archive_movers FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE ON archive_movers TO palimpsest_app;

-- Where an original is in its segment. One that is in the database again keeps the segment
-- that it was in before, so that it is known to be dead there.
ALTER TABLE archive_objects ADD COLUMN segment_id uuid, ADD COLUMN start int, ADD COLUMN length int;

-- +goose Down
ALTER TABLE archive_objects DROP COLUMN segment_id, DROP COLUMN start, DROP COLUMN length;
DROP TABLE archive_movers, archive_segments;
