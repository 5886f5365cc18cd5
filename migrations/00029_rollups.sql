-- +goose Up

-- Of what an exchange saved: cached input that was not read, and, as a positive number,
-- what was rewritten of the cache because of a change of ours. What is left of
-- net_microusd is input that was not sent. Of exchanges from before it is not known:
-- what one of them lost counts as rewritten, what it saved as not sent.
ALTER TABLE exchanges
  ADD COLUMN unread_microusd    bigint  NOT NULL DEFAULT 0,
  ADD COLUMN rewritten_microusd bigint  NOT NULL DEFAULT 0,
  ADD COLUMN bridged            boolean NOT NULL DEFAULT false; -- something that a client's own summary had lost was put back
UPDATE exchanges SET rewritten_microusd = -net_microusd WHERE net_microusd < 0 AND class NOT IN ('summary', 'embedding');
UPDATE exchanges SET bridged = true WHERE report @> '{"events": [{"module": "compactionbridge", "type": "recovered"}]}';

-- The sums of a workspace's exchanges, by half hours, by quarters of days and by days of
-- UTC. A row of a part
-- is of one client, model and API key; the others are of all of them. A row never goes
-- with what it counts: when sessions are deleted, what they cost stays.
CREATE TABLE rollups (
  workspace_id  uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  part          boolean NOT NULL,
  minutes       int NOT NULL CHECK (minutes IN (30, 360, 1440)), -- that the row is long
  at            timestamptz NOT NULL,                       -- where it begins
  client        text NOT NULL,    -- its first 100 characters; empty in rows of all
  model         text NOT NULL,    -- its first 200
  api_key_id    uuid NOT NULL,
  exchanges     bigint NOT NULL,  -- without the product's own calls
  failures      bigint NOT NULL,
  edited        bigint NOT NULL,  -- with a projection
  epochs        bigint NOT NULL,
  epochs_l1     bigint NOT NULL,  -- of them, by the deepest level; neither emergencies nor truncations
  epochs_l2     bigint NOT NULL,
  epochs_l3     bigint NOT NULL,
  emergencies   bigint NOT NULL,
  truncations   bigint NOT NULL,
  unreachable   bigint NOT NULL,  -- no projection reached the target
  compactions   bigint NOT NULL,  -- by clients themselves
  bridged       bigint NOT NULL,
  tokens_before bigint NOT NULL,
  tokens_after  bigint NOT NULL,
  level_0       bigint NOT NULL,
  level_1       bigint NOT NULL,
  level_2       bigint NOT NULL,
  level_3       bigint NOT NULL,
  input         bigint NOT NULL,
  cache_read    bigint NOT NULL,
  cache_write   bigint NOT NULL,
  output        bigint NOT NULL,
  cost_microusd      bigint NOT NULL,
  net_microusd       bigint NOT NULL,
  unread_microusd    bigint NOT NULL,
  rewritten_microusd bigint NOT NULL,
  own_microusd       bigint NOT NULL, -- of the product's own calls: summaries, embeddings
  ttl_expiry           bigint NOT NULL, -- cache misses by cause, and their tokens
  ttl_expiry_tokens    bigint NOT NULL,
  change_ours          bigint NOT NULL,
  change_ours_tokens   bigint NOT NULL,
  change_client        bigint NOT NULL,
  change_client_tokens bigint NOT NULL,
  cold_start           bigint NOT NULL,
  cold_start_tokens    bigint NOT NULL,
  evicted              bigint NOT NULL,
  evicted_tokens       bigint NOT NULL,
  overheads     int[],            -- exchanges in each bucket of overhead_bucket, up to the last; NULL: none
  PRIMARY KEY (workspace_id, part, minutes, at, client, model, api_key_id)
) WITH (fillfactor = 70);         -- rows of now change with every batch
CREATE POLICY tenant ON rollups
  USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
ALTER TABLE rollups ENABLE ROW LEVEL SECURITY;
ALTER TABLE rollups FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE ON rollups TO palimpsest_app;

-- The bucket of a histogram that an overhead in microseconds belongs to: 0 below 32 µs,
-- then eight for each doubling.
CREATE FUNCTION overhead_bucket(us bigint) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT CASE WHEN us < 32 THEN 0 ELSE least(200, 1 + floor(8 * ln(us / 32::float8) / ln(2::float8))::int) END $$;

-- The histogram of some buckets, and the sum of two histograms.
-- +goose StatementBegin
CREATE FUNCTION overheads_of(buckets int[]) RETURNS int[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT array_agg(n ORDER BY i) FROM (
    SELECT i, count(b)::int AS n FROM generate_series(0, (SELECT max(m) FROM unnest(buckets) m)) i LEFT JOIN unnest(buckets) b ON b = i GROUP BY i
  ) counted
$$;
-- +goose StatementEnd
CREATE FUNCTION overheads_sum(a int[], b int[]) RETURNS int[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT array_agg(coalesce(x, 0) + coalesce(y, 0) ORDER BY i) FROM unnest(a, b) WITH ORDINALITY AS t (x, y, i) $$;

-- Whoever adds exchanges adds them up in the same statement: programs of before this
-- migration do, too. The table is locked from here on, so that none falls between the
-- trigger and what is added up of before.
-- +goose StatementBegin
DO $migration$
DECLARE
  made CONSTANT text := 'compression IN (''epoch'', ''emergency'', ''truncated'')';
  sums text[] := ARRAY[
    ['exchanges', 'count(*) FILTER (WHERE NOT own)'],
    ['failures', 'count(*) FILTER (WHERE NOT own AND status >= 400 AND status <> 499)'],
    ['edited', 'count(*) FILTER (WHERE projection > 0)'],
    ['epochs', 'count(*) FILTER (WHERE ' || made || ')'],
    ['epochs_l1', 'count(*) FILTER (WHERE compression = ''epoch'' AND level_2 = 0 AND level_3 = 0)'],
    ['epochs_l2', 'count(*) FILTER (WHERE compression = ''epoch'' AND level_2 > 0 AND level_3 = 0)'],
    ['epochs_l3', 'count(*) FILTER (WHERE compression = ''epoch'' AND level_3 > 0)'],
    ['emergencies', 'count(*) FILTER (WHERE compression = ''emergency'')'],
    ['truncations', 'count(*) FILTER (WHERE compression = ''truncated'')'],
    ['unreachable', 'count(*) FILTER (WHERE compression = ''unreachable'')'],
    ['compactions', 'count(*) FILTER (WHERE class = ''compaction'')'],
    ['bridged', 'count(*) FILTER (WHERE bridged)'],
    ['tokens_before', 'sum(tokens_before)'], ['tokens_after', 'sum(tokens_after)'],
    ['level_0', 'sum(level_0)'], ['level_1', 'sum(level_1)'], ['level_2', 'sum(level_2)'], ['level_3', 'sum(level_3)'],
    ['input', 'sum(input_tokens)'], ['cache_read', 'sum(cache_read_tokens)'],
    ['cache_write', 'sum(cache_write_tokens)'], ['output', 'sum(output_tokens)'],
    ['cost_microusd', 'sum(cost_microusd)'], ['net_microusd', 'sum(net_microusd)'],
    ['unread_microusd', 'sum(unread_microusd)'], ['rewritten_microusd', 'sum(rewritten_microusd)'],
    ['own_microusd', 'coalesce(sum(cost_microusd) FILTER (WHERE own), 0)']
  ];
  causes CONSTANT text[] := ARRAY[['ttl_expiry', 'ttl_expiry'], ['change_ours', 'prefix_change_ours'], ['change_client', 'prefix_change_client'],
    ['cold_start', 'cold_start'], ['evicted', 'provider']];
  one text[];
  names text := ''; figures text := ''; sets text := ''; statement text;
BEGIN
  FOREACH one SLICE 1 IN ARRAY causes LOOP
    sums := sums || ARRAY[[one[1], format('count(*) FILTER (WHERE miss_cause = %L)', one[2])],
      [one[1] || '_tokens', format('coalesce(sum(missed_tokens) FILTER (WHERE miss_cause = %L), 0)', one[2])]];
  END LOOP;
  FOREACH one SLICE 1 IN ARRAY sums LOOP
    names := names || one[1] || ', ';
    figures := figures || one[2] || ', ';
    sets := sets || format('%1$s = rollups.%1$s + EXCLUDED.%1$s, ', one[1]);
  END LOOP;
  statement := 'INSERT INTO rollups (workspace_id, part, minutes, at, client, model, api_key_id, ' || names || 'overheads)
    SELECT workspace_id, part, minutes, date_bin(make_interval(mins => minutes), at, ''epoch''::timestamptz),
      CASE WHEN part THEN left(client, 100) ELSE '''' END, CASE WHEN part THEN left(model, 200) ELSE '''' END,
      CASE WHEN part THEN api_key_id ELSE ''00000000-0000-0000-0000-000000000000'' END, ' || figures || '
      overheads_of(array_agg(overhead_bucket(overhead_us)) FILTER (WHERE attempts > 0 AND NOT own))
    FROM (SELECT *, class IN (''summary'', ''embedding'') AS own FROM %s) e
      CROSS JOIN (VALUES (false), (true)) AS parts (part) CROSS JOIN (VALUES (30), (360), (1440)) AS widths (minutes)
    GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1, 2, 3, 4, 5, 6, 7
    ON CONFLICT (workspace_id, part, minutes, at, client, model, api_key_id) DO UPDATE SET ' || sets || '
      overheads = overheads_sum(rollups.overheads, EXCLUDED.overheads)';
  EXECUTE 'CREATE FUNCTION add_rollups() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN ' || format(statement, 'added') || '; RETURN NULL; END $f$';
  CREATE TRIGGER rollups AFTER INSERT ON exchanges REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION add_rollups();
  EXECUTE format(statement, 'exchanges');
END $migration$;
-- +goose StatementEnd

-- What was added up does not change any more: the application may take from an exchange
-- what belonged to its session, and nothing else.
-- +goose StatementBegin
DO $$
DECLARE c text;
BEGIN
  REVOKE UPDATE ON exchanges FROM palimpsest_app;
  FOR c IN SELECT attname FROM pg_attribute WHERE attrelid = 'exchanges'::regclass AND attnum > 0 AND NOT attisdropped
    AND attname NOT IN ('workspace_id', 'id', 'at', 'client', 'model', 'api_key_id', 'class', 'status', 'projection', 'compression', 'bridged',
      'tokens_before', 'tokens_after', 'level_0', 'level_1', 'level_2', 'level_3', 'input_tokens', 'cache_read_tokens', 'cache_write_tokens',
      'output_tokens', 'cost_microusd', 'net_microusd', 'unread_microusd', 'rewritten_microusd', 'miss_cause', 'missed_tokens', 'overhead_us', 'attempts')
  LOOP
    EXECUTE format('GRANT UPDATE (%I) ON exchanges TO palimpsest_app', c);
  END LOOP;
END $$;
-- +goose StatementEnd

-- What a provider refused a key for, whose newest is asked for on every visit.
CREATE INDEX exchanges_rejected ON exchanges (workspace_id, provider_key_id, at) WHERE error_from = 'provider' AND status IN (401, 403);

-- +goose Down
DROP INDEX exchanges_rejected;
DROP TRIGGER rollups ON exchanges;
DROP FUNCTION add_rollups();
DROP TABLE rollups;
DROP FUNCTION overheads_sum(int[], int[]);
DROP FUNCTION overheads_of(int[]);
DROP FUNCTION overhead_bucket(bigint);
REVOKE UPDATE ON exchanges FROM palimpsest_app;
GRANT UPDATE ON exchanges TO palimpsest_app;
ALTER TABLE exchanges DROP COLUMN bridged, DROP COLUMN rewritten_microusd, DROP COLUMN unread_microusd;
