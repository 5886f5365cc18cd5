-- +goose NO TRANSACTION
-- +goose Up

-- Adds up what earlier requests cost, by their tags and sessions, from the requests that are still kept. The owner is bound by
-- the policies, too, and works for one workspace after the other. A second try adds only what the first one has not.
-- +goose StatementBegin
DO $migration$
DECLARE
  -- How the trigger counts a batch is how earlier requests are counted.
  body CONSTANT text := (SELECT prosrc FROM pg_proc WHERE oid = 'add_tag_sums'::regproc);
  counted CONSTANT text := replace(substring(body FROM 'SELECT e\.workspace_id.*GROUP BY 1, 2, 3, 4, 5'), 'FROM added WHERE', 'FROM exchanges WHERE workspace_id = $1 AND');
  places CONSTANT text := 'workspace_id, name, at, value, api_key_id';
  names CONSTANT text := substring(body FROM places || ', ([^)]*)\)');
  all_workspaces uuid[];
  workspace uuid;
  summed text; missing text;
BEGIN
  SELECT string_agg(format('sum(%1$s) AS %1$s', n), ', ' ORDER BY i), string_agg(format('e.%1$s - coalesce(r.%1$s, 0)', n), ', ' ORDER BY i)
    INTO summed, missing FROM string_to_table(names, ', ') WITH ORDINALITY AS s (n, i);
  FOR try IN 1..200 LOOP
    BEGIN
      SET LOCAL lock_timeout = '250ms';
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
    EXECUTE 'INSERT INTO tag_sum_deltas (' || places || ', ' || names || ')
      SELECT e.' || replace(places, ', ', ', e.') || ', ' || missing || ' FROM (' || counted || ') e (' || places || ', ' || names || ')
      LEFT JOIN (SELECT ' || places || ', ' || summed || ' FROM tag_sums_now WHERE workspace_id = $1 AND minutes = 30 GROUP BY 1, 2, 3, 4, 5) r
        USING (' || places || ')
      WHERE e.exchanges > coalesce(r.exchanges, 0) OR e.cost_microusd > coalesce(r.cost_microusd, 0)' USING workspace;
    UPDATE sessions s SET cost_microusd = e.cost
    FROM (SELECT session_id, sum(cost_microusd)::bigint AS cost FROM exchanges WHERE workspace_id = workspace AND session_id IS NOT NULL GROUP BY 1) e
    WHERE s.workspace_id = workspace AND s.id = e.session_id AND s.cost_microusd < e.cost;
    COMMIT;
  END LOOP;
END $migration$;
-- +goose StatementEnd

-- +goose Down
SELECT 1;
