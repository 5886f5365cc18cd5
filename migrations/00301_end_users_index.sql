-- +goose NO TRANSACTION
-- +goose Up

-- The sessions of an end user.
CREATE INDEX CONCURRENTLY IF NOT EXISTS sessions_end_user ON sessions (workspace_id, end_user, last_at DESC, id DESC) WHERE end_user <> '';

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS sessions_end_user;
