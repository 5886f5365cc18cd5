-- +goose NO TRANSACTION
-- +goose Up

-- The overview asks what kept prompts above their target, which is rare.
CREATE INDEX CONCURRENTLY IF NOT EXISTS exchanges_unreachable ON exchanges (workspace_id, at) WHERE compression = 'unreachable';

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS exchanges_unreachable;
