-- +goose Up

-- What statistics know of a workspace is missing or old while it is new, and on a large
-- installation for days: a table is looked at again when a tenth of it has changed. The
-- planner then takes the workspace for one row, and any index that begins with it, and a
-- filter behind that, for as good as the index of what is asked for. Each request of a new
-- session reads these tables by exact keys; without statistics of the workspace column the
-- planner takes each workspace for a share of the whole table, and the exact key is the
-- better way.
ALTER TABLE lanes ALTER workspace_id SET STATISTICS 0;
ALTER TABLE lane_heads ALTER workspace_id SET STATISTICS 0;
ALTER TABLE epochs ALTER workspace_id SET STATISTICS 0;
ALTER TABLE archive_objects ALTER workspace_id SET STATISTICS 0;
ALTER TABLE archive_entries ALTER workspace_id SET STATISTICS 0;

-- +goose Down
ALTER TABLE lanes ALTER workspace_id SET STATISTICS -1;
ALTER TABLE lane_heads ALTER workspace_id SET STATISTICS -1;
ALTER TABLE epochs ALTER workspace_id SET STATISTICS -1;
ALTER TABLE archive_objects ALTER workspace_id SET STATISTICS -1;
ALTER TABLE archive_entries ALTER workspace_id SET STATISTICS -1;
