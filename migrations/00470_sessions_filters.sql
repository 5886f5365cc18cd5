-- +goose NO TRANSACTION
-- +goose Up

-- Lists of sessions and their counts check these last columns in the index. Without them, a count of single calls of a
-- model without any, or a page of an old time, read every newer session.
CREATE INDEX CONCURRENTLY IF NOT EXISTS sessions_last_started ON sessions (workspace_id, last_at DESC, id DESC, started_at);
CREATE INDEX CONCURRENTLY IF NOT EXISTS sessions_conversations_started ON sessions (workspace_id, last_at DESC, id DESC, started_at) WHERE NOT single;
CREATE INDEX CONCURRENTLY IF NOT EXISTS sessions_single_started ON sessions (workspace_id, last_at DESC, id DESC, started_at) WHERE single;
CREATE INDEX CONCURRENTLY IF NOT EXISTS sessions_client_single ON sessions (workspace_id, client, last_at DESC, id DESC, single);
CREATE INDEX CONCURRENTLY IF NOT EXISTS sessions_model_single ON sessions (workspace_id, model, last_at DESC, id DESC, single);
CREATE INDEX CONCURRENTLY IF NOT EXISTS sessions_key_single ON sessions (workspace_id, api_key_id, last_at DESC, id DESC, single);
DROP INDEX CONCURRENTLY IF EXISTS sessions_last;
DROP INDEX CONCURRENTLY IF EXISTS sessions_conversations;
DROP INDEX CONCURRENTLY IF EXISTS sessions_single;
DROP INDEX CONCURRENTLY IF EXISTS sessions_client;
DROP INDEX CONCURRENTLY IF EXISTS sessions_model;
DROP INDEX CONCURRENTLY IF EXISTS sessions_key;

-- +goose Down
CREATE INDEX CONCURRENTLY IF NOT EXISTS sessions_last ON sessions (workspace_id, last_at DESC, id DESC);
CREATE INDEX CONCURRENTLY IF NOT EXISTS sessions_conversations ON sessions (workspace_id, last_at DESC, id DESC) WHERE NOT single;
CREATE INDEX CONCURRENTLY IF NOT EXISTS sessions_single ON sessions (workspace_id, last_at DESC, id DESC) WHERE single;
CREATE INDEX CONCURRENTLY IF NOT EXISTS sessions_client ON sessions (workspace_id, client, last_at DESC, id DESC);
CREATE INDEX CONCURRENTLY IF NOT EXISTS sessions_model ON sessions (workspace_id, model, last_at DESC, id DESC);
CREATE INDEX CONCURRENTLY IF NOT EXISTS sessions_key ON sessions (workspace_id, api_key_id, last_at DESC, id DESC);
DROP INDEX CONCURRENTLY IF EXISTS sessions_last_started;
DROP INDEX CONCURRENTLY IF EXISTS sessions_conversations_started;
DROP INDEX CONCURRENTLY IF EXISTS sessions_single_started;
DROP INDEX CONCURRENTLY IF EXISTS sessions_client_single;
DROP INDEX CONCURRENTLY IF EXISTS sessions_model_single;
DROP INDEX CONCURRENTLY IF EXISTS sessions_key_single;
