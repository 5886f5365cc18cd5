-- +goose Up

-- The messages of a lane with their places from one on and below another, looked up lane by
-- lane. A join let the planner read all messages of a workspace for a lane of three: it
-- takes a new workspace for a few rows, and a line of lanes, which is one or two, for ten.
-- OFFSET 0 is what keeps a look-up one.
-- +goose StatementBegin
CREATE FUNCTION lane_entries(workspace uuid, lane uuid, first int, below int)
RETURNS TABLE (index int, hash bytea, role text, tokens int, stored_at timestamptz, flags int)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  WITH RECURSIVE line AS (
    SELECT l.id, l.parent_id, l.fork_at, $4 AS below, 0 AS depth
    FROM lanes l WHERE l.workspace_id = $1 AND l.id = $2
    UNION ALL
    SELECT p.id, p.parent_id, p.fork_at, least(line.below, line.fork_at), line.depth + 1
    FROM line CROSS JOIN LATERAL (SELECT id, parent_id, fork_at FROM lanes WHERE workspace_id = $1 AND id = line.parent_id OFFSET 0) p
  )
  SELECT DISTINCT ON (e.index) e.index, e.hash, e.role, e.tokens, e.stored_at, e.flags
  FROM line CROSS JOIN LATERAL (
    SELECT * FROM archive_entries a
    WHERE a.workspace_id = $1 AND a.lane_id = line.id AND a.index >= $3 AND a.index < line.below
    OFFSET 0
  ) e
  ORDER BY e.index, line.depth
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION lane_entries(workspace uuid, lane uuid)
RETURNS TABLE (index int, hash bytea, role text, tokens int, stored_at timestamptz, flags int)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT * FROM lane_entries($1, $2, 0, 2147483647)
$$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION lane_entries(workspace uuid, lane uuid)
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
DROP FUNCTION lane_entries(uuid, uuid, int, int);
