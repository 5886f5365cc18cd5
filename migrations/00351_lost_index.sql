-- +goose NO TRANSACTION
-- +goose Up

-- The compactions that have lost something: few, or none.
CREATE INDEX CONCURRENTLY IF NOT EXISTS epochs_lost ON epochs (workspace_id, created_at DESC) INCLUDE (lane_id, lost) WHERE lost > 0;

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS epochs_lost;
