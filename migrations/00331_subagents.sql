-- +goose NO TRANSACTION
-- +goose Up

-- Subagents by when they were last used: how long they live is learned of those that have ended.
CREATE INDEX CONCURRENTLY IF NOT EXISTS lanes_subagents ON lanes (workspace_id, last_at DESC) INCLUDE (session_id, position, fork_at) WHERE kind = 'subagent';

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS lanes_subagents;
