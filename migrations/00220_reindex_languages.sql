-- +goose Up

-- Terms of languages other than English have changed: accents, widths and endings no longer
-- tell words apart, and scripts without spaces are cut otherwise. All lanes are indexed again,
-- in the background; what was indexed stays found until then.
ALTER TABLE lanes             NO FORCE ROW LEVEL SECURITY;
ALTER TABLE archive_indexed   NO FORCE ROW LEVEL SECURITY;
ALTER TABLE archive_unindexed NO FORCE ROW LEVEL SECURITY;
INSERT INTO archive_unindexed (workspace_id, lane_id)
  SELECT workspace_id, lane_id FROM archive_indexed ORDER BY workspace_id, lane_id
  ON CONFLICT (workspace_id, lane_id) DO UPDATE SET number = archive_unindexed.number + 1;
DELETE FROM archive_indexed;
ALTER TABLE lanes             FORCE ROW LEVEL SECURITY;
ALTER TABLE archive_indexed   FORCE ROW LEVEL SECURITY;
ALTER TABLE archive_unindexed FORCE ROW LEVEL SECURITY;

-- +goose Down
SELECT 1;
