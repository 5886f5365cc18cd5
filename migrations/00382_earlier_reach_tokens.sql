-- +goose NO TRANSACTION
-- +goose Up

-- Fills the sums of reach tokens of earlier requests, from the requests that are still kept. Sums of deleted requests
-- stay as they were. The owner is bound by the policies, too, and works for one workspace after the other. A second try
-- adds only what the first one has not.
-- +goose StatementBegin
DO $migration$
DECLARE
  all_workspaces uuid[];
  workspace uuid;
BEGIN
  FOR try IN 1..200 LOOP
    BEGIN
      SET LOCAL lock_timeout = '250ms';
      LOCK TABLE rollup_deltas IN SHARE ROW EXCLUSIVE MODE; -- batches that began with the sums of the version before have ended
      ALTER TABLE workspaces NO FORCE ROW LEVEL SECURITY;
      SELECT coalesce(array_agg(workspace_id), '{}') INTO all_workspaces FROM workspaces;
      ALTER TABLE workspaces FORCE ROW LEVEL SECURITY;
      EXIT;
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
      IF try = 200 THEN RAISE; END IF;
      PERFORM pg_sleep(0.1);
    END;
  END LOOP;
  COMMIT;

  FOREACH workspace IN ARRAY all_workspaces LOOP
    PERFORM set_config('app.workspace_id', workspace::text, true);
    INSERT INTO rollup_deltas (workspace_id, at, client, model, api_key_id, reach_before, reach_after)
    SELECT workspace, r.at, r.client, r.model, r.api_key_id, e.before - r.before, e.after - r.after
    FROM (
      SELECT at, client, model, api_key_id, sum(reach_before) AS before, sum(reach_after) AS after FROM rollups_now
      WHERE workspace_id = workspace AND part AND minutes = 30 GROUP BY 1, 2, 3, 4 HAVING sum(reach) > 0
    ) r CROSS JOIN LATERAL (
      SELECT sum(tokens_before) AS before, sum(tokens_after) AS after FROM exchanges x
      WHERE x.workspace_id = workspace AND x.at >= r.at AND x.at < r.at + interval '30 minutes' AND x.reach
        AND left(x.client, 100) = r.client AND left(x.model, 200) = r.model AND x.api_key_id = r.api_key_id
    ) e WHERE e.before > r.before;

    UPDATE sessions s SET reach_before = greatest(s.reach_before, e.before), reach_after = greatest(s.reach_after, e.after)
    FROM sessions o CROSS JOIN LATERAL (
      SELECT sum(tokens_before) AS before, sum(tokens_after) AS after FROM exchanges x
      WHERE x.workspace_id = workspace AND x.session_id = o.id AND x.reach
    ) e
    WHERE o.workspace_id = workspace AND o.reach > 0 AND e.before > 0 AND s.workspace_id = workspace AND s.id = o.id;
    COMMIT;
  END LOOP;
END $migration$;
-- +goose StatementEnd

-- +goose Down
SELECT 1;
