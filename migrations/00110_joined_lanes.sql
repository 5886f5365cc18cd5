-- +goose Up

-- Lanes that turned out to be the beginning, or the end, of another one: a session's requests
-- went to replicas that could not tell each other of them. What is still recorded of such a
-- lane belongs to the one that it has joined.
CREATE TABLE joined_lanes (
  workspace_id uuid NOT NULL,
  lane_id      uuid NOT NULL,
  into_id      uuid NOT NULL,
  joined_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (workspace_id, lane_id),
  FOREIGN KEY (workspace_id, into_id) REFERENCES lanes ON DELETE CASCADE
);
CREATE INDEX joined_lanes_into ON joined_lanes (workspace_id, into_id);
CREATE POLICY tenant ON joined_lanes
  USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
ALTER TABLE joined_lanes ENABLE ROW LEVEL SECURITY;
ALTER TABLE joined_lanes FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON joined_lanes TO palimpsest_app;

-- As before, but what is announced of a lane that has joined another one is that one's.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION announce_lanes(
  workspace uuid, sessions uuid[], keys uuid[], formats text[], names text[], sources text[], upstreams text[],
  titles text[], clients text[], models text[],
  lanes uuid[], parents uuid[], forks int[], fork_epochs int[], fork_inserts int[], kinds text[],
  heads bytea[], positions int[], times timestamptz[]
) RETURNS void LANGUAGE sql AS $$
  SELECT set_config('synchronous_commit', 'off', true);

  INSERT INTO sessions (workspace_id, id, api_key_id, format, name, source, upstream, title, client, model, started_at, last_at)
  SELECT DISTINCT ON (id) $1, id, key, format, name, source, upstream, title, client, model, at, at
  FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10, $19, $11) AS t (id, key, format, name, source, upstream, title, client, model, at, lane)
  WHERE NOT EXISTS (SELECT FROM joined_lanes j WHERE j.workspace_id = $1 AND j.lane_id = t.lane)
  ORDER BY id, at
  ON CONFLICT DO NOTHING;

  INSERT INTO lanes (workspace_id, id, session_id, parent_id, fork_at, fork_epoch, fork_insert, kind, position, created_at, last_at)
  SELECT DISTINCT ON (id) $1, id, session, nullif(parent, '00000000-0000-0000-0000-000000000000'), fork, epoch, insert, kind, position, at, at
  FROM unnest($11, $2, $12, $13, $14, $15, $16, $18, $19) AS t (id, session, parent, fork, epoch, insert, kind, position, at)
  WHERE NOT EXISTS (SELECT FROM joined_lanes j WHERE j.workspace_id = $1 AND j.lane_id = t.id)
    AND EXISTS (SELECT FROM sessions s WHERE s.workspace_id = $1 AND s.id = t.session)
  ORDER BY id, at
  ON CONFLICT DO NOTHING;

  INSERT INTO lane_heads (workspace_id, head, lane_id, position, seen_at)
  SELECT DISTINCT ON (head) $1, head, lane, position, at
  FROM (
    SELECT head, coalesce((SELECT into_id FROM joined_lanes j WHERE j.workspace_id = $1 AND j.lane_id = a.lane), lane) AS lane, position, at
    FROM unnest($17, $11, $18, $19) AS a (head, lane, position, at)
  ) AS t
  WHERE head IS NOT NULL AND EXISTS (SELECT FROM lanes l WHERE l.workspace_id = $1 AND l.id = t.lane) AND NOT EXISTS (
    SELECT FROM lane_heads o WHERE o.workspace_id = $1 AND o.lane_id = t.lane AND o.position >= t.position AND o.head <> t.head
  )
  ORDER BY head, at DESC
  ON CONFLICT (workspace_id, head) DO UPDATE SET lane_id = excluded.lane_id, seen_at = excluded.seen_at
    WHERE excluded.seen_at > lane_heads.seen_at;
$$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION announce_lanes(
  workspace uuid, sessions uuid[], keys uuid[], formats text[], names text[], sources text[], upstreams text[],
  titles text[], clients text[], models text[],
  lanes uuid[], parents uuid[], forks int[], fork_epochs int[], fork_inserts int[], kinds text[],
  heads bytea[], positions int[], times timestamptz[]
) RETURNS void LANGUAGE sql AS $$
  SELECT set_config('synchronous_commit', 'off', true);

  INSERT INTO sessions (workspace_id, id, api_key_id, format, name, source, upstream, title, client, model, started_at, last_at)
  SELECT DISTINCT ON (id) $1, id, key, format, name, source, upstream, title, client, model, at, at
  FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10, $19) AS t (id, key, format, name, source, upstream, title, client, model, at) ORDER BY id, at
  ON CONFLICT DO NOTHING;

  INSERT INTO lanes (workspace_id, id, session_id, parent_id, fork_at, fork_epoch, fork_insert, kind, position, created_at, last_at)
  SELECT DISTINCT ON (id) $1, id, session, nullif(parent, '00000000-0000-0000-0000-000000000000'), fork, epoch, insert, kind, position, at, at
  FROM unnest($11, $2, $12, $13, $14, $15, $16, $18, $19) AS t (id, session, parent, fork, epoch, insert, kind, position, at) ORDER BY id, at
  ON CONFLICT DO NOTHING;

  INSERT INTO lane_heads (workspace_id, head, lane_id, position, seen_at)
  SELECT DISTINCT ON (head) $1, head, lane, position, at
  FROM unnest($17, $11, $18, $19) AS t (head, lane, position, at)
  WHERE head IS NOT NULL AND NOT EXISTS (
    SELECT FROM lane_heads o WHERE o.workspace_id = $1 AND o.lane_id = t.lane AND o.position >= t.position AND o.head <> t.head
  )
  ORDER BY head, at DESC
  ON CONFLICT (workspace_id, head) DO UPDATE SET lane_id = excluded.lane_id, seen_at = excluded.seen_at
    WHERE excluded.seen_at > lane_heads.seen_at;
$$;
-- +goose StatementEnd
DROP TABLE joined_lanes;
