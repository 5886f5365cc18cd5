-- +goose Up

-- Makes lanes and the ends of their newest requests known to all processes before they are
-- recorded. What is there already stays, so that nothing waits for a recorder; tables come in
-- a recorder's order, so that neither waits for the other in a circle. Nothing is lost if the
-- server forgets it again: the recorder writes the same. The end of a request that has left
-- its lane at another process is not the lane's: its recorder stores it in a fork.
-- +goose StatementBegin
CREATE FUNCTION announce_lanes(
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

-- +goose Down
DROP FUNCTION announce_lanes;
