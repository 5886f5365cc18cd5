-- +goose NO TRANSACTION
-- +goose Up

-- Until when a lane is being indexed by a process, so that others take other lanes; NULL or
-- past: by none. A process that is killed leaves its lanes to others that way.
ALTER TABLE archive_unindexed ADD COLUMN IF NOT EXISTS claimed_until timestamptz;

-- The workspaces that have lanes waiting, and each one's oldest, are found by look-ups.
CREATE INDEX CONCURRENTLY IF NOT EXISTS archive_unindexed_turn ON archive_unindexed (workspace_id, since, lane_id);

DROP POLICY IF EXISTS worker_claims ON archive_unindexed; -- of a first try
CREATE POLICY worker_claims ON archive_unindexed FOR UPDATE TO palimpsest_worker USING (true);
GRANT UPDATE (claimed_until) ON archive_unindexed TO palimpsest_worker;

-- +goose Down
REVOKE UPDATE (claimed_until) ON archive_unindexed FROM palimpsest_worker;
DROP POLICY IF EXISTS worker_claims ON archive_unindexed;
DROP INDEX CONCURRENTLY IF EXISTS archive_unindexed_turn;
ALTER TABLE archive_unindexed DROP COLUMN IF EXISTS claimed_until;
