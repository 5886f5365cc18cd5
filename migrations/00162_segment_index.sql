-- +goose NO TRANSACTION
-- +goose Up

-- Which originals a segment holds.
CREATE INDEX CONCURRENTLY IF NOT EXISTS archive_objects_segment ON archive_objects (workspace_id, segment_id) INCLUDE (place, length) WHERE segment_id IS NOT NULL;

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS archive_objects_segment;
