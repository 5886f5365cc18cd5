-- +goose Up

-- What kinds of blocks a message holds (conversation.Flags), for the preview of other
-- settings, which reads no message. 0: it was stored before.
ALTER TABLE archive_entries ADD COLUMN flags int NOT NULL DEFAULT 0 CHECK (flags >= 0);

-- The messages of a lane tell it too.
DROP FUNCTION lane_entries(uuid, uuid);
-- +goose StatementBegin
CREATE FUNCTION lane_entries(workspace uuid, lane uuid)
RETURNS TABLE (index int, hash bytea, role text, tokens int, stored_at timestamptz, flags int)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  WITH RECURSIVE line AS (
    SELECT l.id, l.parent_id, l.fork_at, 2147483647 AS below, 0 AS depth
    FROM lanes l WHERE l.workspace_id = $1 AND l.id = $2
    UNION ALL
    SELECT p.id, p.parent_id, p.fork_at, least(line.below, line.fork_at), line.depth + 1
    FROM line JOIN lanes p ON p.workspace_id = $1 AND p.id = line.parent_id
  )
  SELECT DISTINCT ON (e.index) e.index, e.hash, e.role, e.tokens, e.stored_at, e.flags
  FROM line JOIN archive_entries e ON e.workspace_id = $1 AND e.lane_id = line.id AND e.index < line.below
  ORDER BY e.index, line.depth
$$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION lane_entries(uuid, uuid);
ALTER TABLE archive_entries DROP COLUMN flags;
-- +goose StatementBegin
CREATE FUNCTION lane_entries(workspace uuid, lane uuid)
RETURNS TABLE (index int, hash bytea, role text, tokens int, stored_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  WITH RECURSIVE line AS (
    SELECT l.id, l.parent_id, l.fork_at, 2147483647 AS below, 0 AS depth
    FROM lanes l WHERE l.workspace_id = $1 AND l.id = $2
    UNION ALL
    SELECT p.id, p.parent_id, p.fork_at, least(line.below, line.fork_at), line.depth + 1
    FROM line JOIN lanes p ON p.workspace_id = $1 AND p.id = line.parent_id
  )
  SELECT DISTINCT ON (e.index) e.index, e.hash, e.role, e.tokens, e.stored_at
  FROM line JOIN archive_entries e ON e.workspace_id = $1 AND e.lane_id = line.id AND e.index < line.below
  ORDER BY e.index, line.depth
$$;
-- +goose StatementEnd
