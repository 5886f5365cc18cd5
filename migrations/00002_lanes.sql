-- +goose Up

-- What a lane is: the conversation itself, a subagent's, or a side call's, such
-- as one that asks for a title or a summary.
ALTER TABLE lanes ADD COLUMN kind text NOT NULL DEFAULT 'main' CHECK (kind IN ('main', 'subagent', 'side'));

-- What the request was to its client, where that is recognised.
ALTER TABLE exchanges ADD COLUMN class text NOT NULL DEFAULT '';

-- The messages of a lane: those it shares with the lane it forked from are
-- written with that lane only.
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

-- +goose Down
DROP FUNCTION lane_entries(uuid, uuid);
ALTER TABLE exchanges DROP COLUMN class;
ALTER TABLE lanes DROP COLUMN kind;
