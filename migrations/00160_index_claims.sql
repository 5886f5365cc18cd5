-- +goose Up

-- Until when a lane is being indexed by a process, so that others take other lanes; NULL or
-- past: by none. A process that is killed leaves its lanes to others that way.
ALTER TABLE archive_unindexed ADD COLUMN claimed_until timestamptz;

-- The workspaces that have lanes waiting, and each one's oldest, are found by look-ups.
CREATE INDEX archive_unindexed_turn ON archive_unindexed (workspace_id, since, lane_id);

CREATE POLICY worker_claims ON archive_unindexed FOR UPDATE TO palimpsest_worker USING (true);
GRANT UPDATE (claimed_until) ON archive_unindexed TO palimpsest_worker;

-- +goose Down
REVOKE UPDATE (claimed_until) ON archive_unindexed FROM palimpsest_worker;
DROP POLICY worker_claims ON archive_unindexed;
DROP INDEX archive_unindexed_turn;
ALTER TABLE archive_unindexed DROP COLUMN claimed_until;
