-- +goose Up

-- Adds a sum to those of a workspace's requests, or takes it away again: its column in rollups and rollup_deltas, and
-- what fills, reads and folds it. figure is the sum of a batch's rows, as SQL. A later migration adds a sum by one call.
-- +goose StatementBegin
CREATE FUNCTION set_rollup_sum(name text, figure text, present boolean) RETURNS void LANGUAGE plpgsql AS $set$
DECLARE
  filled CONSTANT text := format('nullif(%s, 0), ', figure);
  part CONSTANT text := 'date_bin(make_interval(mins => minutes), d.at, ''epoch''::timestamptz), CASE WHEN part THEN d.client ELSE '''' END,
      CASE WHEN part THEN d.model ELSE '''' END, CASE WHEN part THEN d.api_key_id ELSE ''00000000-0000-0000-0000-000000000000'' END, ';
  widths CONSTANT text := ' CROSS JOIN (VALUES (false), (true)) AS parts (part) CROSS JOIN (VALUES (30), (360), (1440)) AS widths (minutes)';
  body text := (SELECT prosrc FROM pg_proc WHERE oid = 'add_rollups'::regproc);
  names text; added text; folded text; sets text;
BEGIN
  -- The version before records and reads meanwhile, and may hold what this waits for while it waits for what this holds.
  FOR try IN 1..200 LOOP
    BEGIN
      SET LOCAL lock_timeout = '250ms';
      LOCK TABLE rollups_now IN ACCESS EXCLUSIVE MODE; -- and the tables below it
      EXIT;
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
      IF try = 200 THEN RAISE; END IF;
      PERFORM pg_sleep(0.1);
    END;
  END LOOP;
  SELECT string_agg(a.attname || ', ', '' ORDER BY a.attnum) INTO names FROM pg_attribute a
    WHERE a.attrelid = 'rollups_now'::regclass AND a.attnum > 0
      AND a.attname NOT IN ('workspace_id', 'part', 'minutes', 'at', 'client', 'model', 'api_key_id', 'overheads', name);
  IF present THEN
    names := names || name || ', ';
    body := replace(replace(body, 'buckets)', name || ', buckets)'), 'array_agg(overhead_bucket(', filled || 'array_agg(overhead_bucket(');
    EXECUTE format('ALTER TABLE %I ADD COLUMN %I bigint NOT NULL DEFAULT 0', 'rollups', name);
    EXECUTE format('ALTER TABLE %I ADD COLUMN %I bigint', 'rollup_deltas', name);
  ELSE
    body := replace(replace(body, name || ', buckets)', 'buckets)'), filled, '');
  END IF;
  SELECT string_agg(format('coalesce(d.%1$s, 0) AS %1$s, ', n), '' ORDER BY place), string_agg(format('coalesce(sum(d.%s), 0), ', n), '' ORDER BY place),
      string_agg(format('%1$s = rollups.%1$s + EXCLUDED.%1$s, ', n), '' ORDER BY place)
    INTO added, folded, sets FROM string_to_table(rtrim(names, ', '), ', ') WITH ORDINALITY AS s (n, place);
  EXECUTE 'CREATE OR REPLACE FUNCTION add_rollups() RETURNS trigger LANGUAGE plpgsql AS ' || quote_literal(body);

  DROP VIEW rollups_now;
  EXECUTE 'CREATE VIEW rollups_now WITH (security_invoker = true) AS
    SELECT workspace_id, part, minutes, at, client, model, api_key_id, ' || names || 'overheads FROM rollups
    UNION ALL
    SELECT d.workspace_id, part, minutes, ' || part || added || 'overheads_of(d.buckets::int[]) FROM rollup_deltas d' || widths;
  GRANT SELECT ON rollups_now TO palimpsest_app;

  EXECUTE 'CREATE OR REPLACE FUNCTION fold_sums(of_workspace uuid) RETURNS void LANGUAGE plpgsql AS $f$ BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(''fold_sums '' || of_workspace, 0));
    WITH d AS (DELETE FROM rollup_deltas WHERE workspace_id = of_workspace RETURNING *)
    INSERT INTO rollups (workspace_id, part, minutes, at, client, model, api_key_id, ' || names || 'overheads)
    SELECT d.workspace_id, part, minutes, ' || part || folded || '
      overheads_of(string_to_array(string_agg(array_to_string(d.buckets, '',''), '',''), '','')::int[])
    FROM d' || widths || ' GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1, 2, 3, 4, 5, 6, 7
    ON CONFLICT (workspace_id, part, minutes, at, client, model, api_key_id) DO UPDATE SET ' || sets || '
      overheads = overheads_sum(rollups.overheads, EXCLUDED.overheads);
    WITH d AS (DELETE FROM usage_meter_deltas WHERE workspace_id = of_workspace RETURNING *)
    INSERT INTO usage_meter (workspace_id, hour, exchanges) SELECT workspace_id, hour, sum(exchanges) FROM d GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (workspace_id, hour) DO UPDATE SET exchanges = usage_meter.exchanges + EXCLUDED.exchanges;
  END $f$';

  IF NOT present THEN
    EXECUTE format('ALTER TABLE %I DROP COLUMN %I', 'rollups', name);
    EXECUTE format('ALTER TABLE %I DROP COLUMN %I', 'rollup_deltas', name);
  END IF;
END $set$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION set_rollup_sum FROM PUBLIC;

-- The tokens of requests that only went through because they were shortened. They are no savings.
SELECT set_rollup_sum('reach_before', 'sum(tokens_before) FILTER (WHERE reach)', true);
SELECT set_rollup_sum('reach_after', 'sum(tokens_after) FILTER (WHERE reach)', true);

-- +goose Down
SELECT set_rollup_sum('reach_after', 'sum(tokens_after) FILTER (WHERE reach)', false);
SELECT set_rollup_sum('reach_before', 'sum(tokens_before) FILTER (WHERE reach)', false);
DROP FUNCTION set_rollup_sum;
