-- +goose Up

-- Single calls: the client names no session, and no request carried an answer, so that
-- nothing tells the same question asked again from a conversation.
ALTER TABLE sessions ADD COLUMN continued boolean NOT NULL DEFAULT false; -- a request carried history
ALTER TABLE sessions ADD COLUMN single boolean NOT NULL GENERATED ALWAYS AS (name = '' AND NOT continued) STORED;
ALTER TABLE sessions NO FORCE ROW LEVEL SECURITY;
ALTER TABLE lanes    NO FORCE ROW LEVEL SECURITY;
UPDATE sessions s SET continued = true
  WHERE EXISTS (SELECT FROM lanes l WHERE l.workspace_id = s.workspace_id AND l.session_id = s.id AND l.position > 2);
ALTER TABLE sessions FORCE ROW LEVEL SECURITY;
ALTER TABLE lanes    FORCE ROW LEVEL SECURITY;
CREATE INDEX sessions_conversations ON sessions (workspace_id, last_at DESC, id DESC) WHERE NOT single;
CREATE INDEX sessions_single        ON sessions (workspace_id, last_at DESC, id DESC) WHERE single;

-- +goose Down
ALTER TABLE sessions DROP COLUMN single;
ALTER TABLE sessions DROP COLUMN continued;
