-- +goose NO TRANSACTION
-- +goose Up

-- Since when, and by whom, a session is pinned as a whole: it's not compacted unless someone asks for it.
ALTER TABLE sessions ADD COLUMN IF NOT EXISTS pinned_at timestamptz, ADD COLUMN IF NOT EXISTS pinned_by uuid;

-- The lanes that continue a lane of another session: few.
CREATE INDEX CONCURRENTLY IF NOT EXISTS lanes_continuing ON lanes (workspace_id, parent_id) WHERE fork_at = 0 AND parent_id IS NOT NULL;

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS lanes_continuing;
ALTER TABLE sessions DROP COLUMN IF EXISTS pinned_by, DROP COLUMN IF EXISTS pinned_at;
