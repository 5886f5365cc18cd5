-- +goose Up

-- What a workspace says of its data. Whose sessions' text each role may read: of
-- all sessions, of those of one's own API keys, or of none.
ALTER TABLE workspaces
  ADD COLUMN time_zone     text NOT NULL DEFAULT 'UTC',
  ADD COLUMN managers_read text NOT NULL DEFAULT 'all'  CHECK (managers_read IN ('all', 'own')),
  ADD COLUMN members_read  text NOT NULL DEFAULT 'own'  CHECK (members_read IN ('all', 'own')),
  ADD COLUMN viewers_read  text NOT NULL DEFAULT 'none' CHECK (viewers_read IN ('all', 'none')),
  ADD COLUMN no_store      boolean NOT NULL DEFAULT false, -- nothing of its exchanges is kept but figures
  ADD COLUMN deleted_at    timestamptz;                    -- nobody reaches it any more; a job removes the rest
CREATE INDEX workspaces_deleted ON workspaces (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX audit_entries_at ON audit_entries (workspace_id, action, id);

-- +goose Down
DROP INDEX audit_entries_at;
ALTER TABLE workspaces DROP COLUMN time_zone, DROP COLUMN managers_read, DROP COLUMN members_read,
  DROP COLUMN viewers_read, DROP COLUMN no_store, DROP COLUMN deleted_at;
