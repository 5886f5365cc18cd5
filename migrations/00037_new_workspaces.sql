-- +goose Up

-- What statistics know of a workspace is missing or old while it is new, and on a large
-- installation for days: a table is looked at again when a tenth of it has changed. The
-- planner then takes the workspace for one row, and any index that begins with it, and a
-- filter behind that, for as good as the index of what is asked for.
--
-- Of these tables each request of a new session reads rows by their exact keys. Without
-- statistics of the column the planner takes each workspace for a share of the table, and
-- the exact key is the better way.
ALTER TABLE lane_heads ALTER workspace_id SET STATISTICS 0;
ALTER TABLE archive_objects ALTER workspace_id SET STATISTICS 0;
ALTER TABLE archive_entries ALTER workspace_id SET STATISTICS 0;

-- Lanes are also joined by the thousand, where the statistics are needed: no index but that
-- of their keys begins with the workspace.
DROP INDEX lanes_session;
CREATE INDEX lanes_session ON lanes (session_id, workspace_id);

-- +goose Down
DROP INDEX lanes_session;
CREATE INDEX lanes_session ON lanes (workspace_id, session_id);
ALTER TABLE archive_entries ALTER workspace_id SET STATISTICS -1;
ALTER TABLE archive_objects ALTER workspace_id SET STATISTICS -1;
ALTER TABLE lane_heads ALTER workspace_id SET STATISTICS -1;
