-- +goose Up

-- The archive: every message of a workspace once, by its SHA-256.
CREATE TABLE archive_objects (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  hash         bytea NOT NULL,
  size         int NOT NULL,                -- bytes of the original
  encoding     smallint NOT NULL,           -- of the stored bytes: 0 as they are, 1 zstd; 2 more where they are sealed
  place        smallint NOT NULL DEFAULT 0, -- of the bytes: 0 here, 1 in the bucket, 2 in the bucket, to be deleted there
  bytes        bytea,
  created_at   timestamptz NOT NULL DEFAULT now(),
  -- What lies in a bucket without being sealed has its hash for a name there; the
  -- sealed has a name that only the data key can make.
  bare         boolean NOT NULL DEFAULT false,
  PRIMARY KEY (workspace_id, hash),
  CHECK ((bytes IS NOT NULL) = (place = 0))
);
CREATE INDEX archive_objects_here ON archive_objects (workspace_id, created_at) WHERE place = 0;
CREATE INDEX archive_objects_doomed ON archive_objects (workspace_id) WHERE place = 2;
CREATE INDEX archive_objects_unsealed ON archive_objects (workspace_id) WHERE encoding < 2 OR bare;

-- Which message of a lane is which object.
CREATE TABLE archive_entries (
  workspace_id uuid NOT NULL,
  lane_id      uuid NOT NULL,
  index        int NOT NULL, -- place in the client's list
  session_id   uuid NOT NULL,
  hash         bytea NOT NULL,
  role         text NOT NULL,
  tokens       int NOT NULL,
  stored_at    timestamptz NOT NULL DEFAULT now(),
  -- What kinds of blocks a message holds (conversation.Flags), for the preview of other
  -- settings, which reads no message. 0: not known.
  flags        int NOT NULL DEFAULT 0 CHECK (flags >= 0),
  PRIMARY KEY (workspace_id, lane_id, index),
  FOREIGN KEY (workspace_id, lane_id) REFERENCES lanes ON DELETE CASCADE,
  FOREIGN KEY (workspace_id, hash) REFERENCES archive_objects
);
CREATE INDEX archive_entries_hash ON archive_entries (workspace_id, hash);

ALTER TABLE archive_objects ALTER COLUMN bytes SET STORAGE EXTERNAL; -- compressed already

-- Read by exact keys, as lane_heads are.
ALTER TABLE archive_objects ALTER workspace_id SET STATISTICS 0;
ALTER TABLE archive_entries ALTER workspace_id SET STATISTICS 0;

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['archive_objects', 'archive_entries'] LOOP
    EXECUTE format('CREATE POLICY tenant ON %I USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()))', t);
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
  END LOOP;
END $$;
-- +goose StatementEnd

GRANT SELECT, INSERT, UPDATE, DELETE ON archive_objects TO palimpsest_app;
GRANT SELECT, INSERT, UPDATE (session_id) ON archive_entries TO palimpsest_app;

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

-- All messages of a lane.
-- +goose StatementBegin
CREATE FUNCTION lane_entries(workspace uuid, lane uuid)
RETURNS TABLE (index int, hash bytea, role text, tokens int, stored_at timestamptz, flags int)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT * FROM lane_entries($1, $2, 0, 2147483647)
$$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION lane_entries(uuid, uuid), lane_entries(uuid, uuid, int, int);
DROP TABLE archive_entries, archive_objects;
