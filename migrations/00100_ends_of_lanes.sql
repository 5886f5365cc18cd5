-- +goose NO TRANSACTION
-- +goose Up

-- A recorder asks which ends of requests a lane has between two places.
CREATE INDEX CONCURRENTLY IF NOT EXISTS lane_heads_place ON lane_heads (workspace_id, lane_id, position);
DROP INDEX CONCURRENTLY IF EXISTS lane_heads_lane;

-- +goose Down
CREATE INDEX CONCURRENTLY IF NOT EXISTS lane_heads_lane ON lane_heads (workspace_id, lane_id);
DROP INDEX CONCURRENTLY IF EXISTS lane_heads_place;
