-- +goose NO TRANSACTION
-- +goose Up

-- The sessions of a project, newest first.
CREATE INDEX CONCURRENTLY IF NOT EXISTS sessions_project ON sessions (workspace_id, project, last_at DESC, id DESC) WHERE project <> '';

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS sessions_project;
