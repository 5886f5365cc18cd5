-- +goose NO TRANSACTION
-- +goose Up

-- Everything that is kept of a conversation is sealed when it is stored: nothing looks for what is
-- not. The texts that stood open are not written any more. The version before writes them empty, so
-- their columns go once no process writes them.
ALTER TABLE lane_inserts ALTER text SET DEFAULT '';
DROP INDEX CONCURRENTLY IF EXISTS lane_inserts_unsealed;
DROP INDEX CONCURRENTLY IF EXISTS archive_objects_unsealed;

-- +goose Down
CREATE INDEX CONCURRENTLY IF NOT EXISTS archive_objects_unsealed ON archive_objects (workspace_id) WHERE encoding < 2 OR bare;
CREATE INDEX CONCURRENTLY IF NOT EXISTS lane_inserts_unsealed ON lane_inserts (workspace_id) WHERE sealed IS NULL;
ALTER TABLE lane_inserts ALTER text DROP DEFAULT;
