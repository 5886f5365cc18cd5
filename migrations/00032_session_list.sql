-- +goose Up

-- Sessions that people should look at, beside those of exchanges_truncated.
CREATE INDEX exchanges_session_failed ON exchanges (workspace_id, session_id) WHERE status >= 400 AND session_id IS NOT NULL;

-- The list of sessions of one part, one client, one model or one key, newest first.
CREATE INDEX sessions_compressed ON sessions (workspace_id, last_at DESC, id DESC) WHERE epochs > 0;
CREATE INDEX sessions_client ON sessions (workspace_id, client, last_at DESC, id DESC);
CREATE INDEX sessions_model ON sessions (workspace_id, model, last_at DESC, id DESC);
CREATE INDEX sessions_key ON sessions (workspace_id, api_key_id, last_at DESC, id DESC);

-- +goose Down
DROP INDEX sessions_key;
DROP INDEX sessions_model;
DROP INDEX sessions_client;
DROP INDEX sessions_compressed;
DROP INDEX exchanges_session_failed;
