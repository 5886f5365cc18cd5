-- +goose Up

-- Requests and their answers, and the sums of them.

CREATE TABLE exchanges (
  workspace_id       uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  id                 uuid NOT NULL,                  -- version 7: ordered by time
  at                 timestamptz NOT NULL,
  session_id         uuid,
  lane_id            uuid,
  api_key_id         uuid NOT NULL,
  provider           text NOT NULL,
  endpoint           text NOT NULL,
  model              text NOT NULL,
  client             text NOT NULL,
  stream             boolean NOT NULL,
  status             int NOT NULL,
  error_from         text NOT NULL DEFAULT '',
  error_type         text NOT NULL DEFAULT '',
  position           int NOT NULL,
  compression        text NOT NULL,
  tokens_before      int NOT NULL,
  tokens_after       int NOT NULL,
  window_tokens      int NOT NULL,
  level_0 int NOT NULL, level_1 int NOT NULL, level_2 int NOT NULL, level_3 int NOT NULL,
  input_tokens int NOT NULL, cache_read_tokens int NOT NULL, cache_write_tokens int NOT NULL, output_tokens int NOT NULL,
  cost_microusd      bigint NOT NULL,
  net_microusd       bigint NOT NULL,
  overhead_us bigint NOT NULL, ttfb_us bigint NOT NULL, duration_us bigint NOT NULL,
  attempts           int NOT NULL,
  answer             bytea,
  report             jsonb,
  -- What the request was to its client, where that is recognized.
  class              text NOT NULL DEFAULT '',
  -- What an exchange missed of the provider's cache and why, the projection that its
  -- prompt had, and what the epoch that made it was to save.
  miss_cause         text NOT NULL DEFAULT '',       -- empty: nothing was missed
  missed_tokens      int NOT NULL DEFAULT 0,
  projection         int NOT NULL DEFAULT 0,         -- number; 0: none
  predicted_microusd bigint,                         -- NULL: no epoch, or one without a prediction
  provider_key_id    uuid,                           -- NULL: none that is stored
  -- What people look for an exchange by, and what they want to know of one.
  tags               jsonb,                          -- names and values that the client gave (X-Palimpsest-Tag-<name>); NULL: none
  signed             jsonb,                          -- headers of ours that the answer had and that no other column tells; NULL: none
  error_text         bytea,                          -- what the provider said where it refused, sealed; NULL: nothing is kept
  -- Of what an exchange saved: cached input that was not read, and, as a positive number,
  -- what was rewritten of the cache because of a change of ours. What is left of
  -- net_microusd is input that was not sent.
  unread_microusd    bigint NOT NULL DEFAULT 0,
  rewritten_microusd bigint NOT NULL DEFAULT 0,
  bridged            boolean NOT NULL DEFAULT false, -- something that a client's own summary had lost was put back
  -- The provider compacted the history by itself before it answered.
  compacted          boolean NOT NULL DEFAULT false,
  -- A request whose prompt the provider would have refused for its length, and which it
  -- answered because we shortened it, is counted and saves no money. What the provider takes
  -- and the size above which the prompt was to be compressed stand with each request.
  reach              boolean NOT NULL DEFAULT false,
  takes_tokens       int NOT NULL DEFAULT 0,         -- 0 if not known
  target_tokens      int NOT NULL DEFAULT 0,         -- 0 if never
  PRIMARY KEY (workspace_id, id)
);
CREATE INDEX exchanges_at ON exchanges (workspace_id, at DESC, id DESC);
CREATE INDEX exchanges_answer ON exchanges (workspace_id, answer) WHERE answer IS NOT NULL;
-- The exchanges under each projection of a lane, and those that missed something.
CREATE INDEX exchanges_projection ON exchanges (workspace_id, lane_id, projection)
  INCLUDE (net_microusd, predicted_microusd) WHERE projection > 0;
CREATE INDEX exchanges_miss ON exchanges (workspace_id, at) INCLUDE (miss_cause, missed_tokens) WHERE miss_cause <> '';
-- Sessions that people should look at.
CREATE INDEX exchanges_truncated ON exchanges (workspace_id, at) INCLUDE (session_id) WHERE compression = 'truncated';
CREATE INDEX exchanges_provider_key ON exchanges (workspace_id, provider_key_id, at) WHERE provider_key_id IS NOT NULL;
-- What a key has cost since the beginning of a day or a month.
CREATE INDEX exchanges_key ON exchanges (workspace_id, api_key_id, at) INCLUDE (cost_microusd);
CREATE INDEX exchanges_client ON exchanges (workspace_id, client, at DESC, id DESC);
CREATE INDEX exchanges_model ON exchanges (workspace_id, model, at DESC, id DESC);
CREATE INDEX exchanges_failed ON exchanges (workspace_id, at DESC, id DESC) WHERE status >= 400 OR error_from <> '';
-- What has expired of it.
CREATE INDEX exchanges_error_text ON exchanges (workspace_id, at) WHERE error_text IS NOT NULL;
-- What a provider refused a key for, whose newest is asked for on every visit.
CREATE INDEX exchanges_rejected ON exchanges (workspace_id, provider_key_id, at) WHERE error_from = 'provider' AND status IN (401, 403);
CREATE INDEX exchanges_session ON exchanges (workspace_id, session_id, at DESC, id DESC) INCLUDE (lane_id, tokens_before);
-- What happened in a lane, newest first: few of its requests.
CREATE INDEX exchanges_events ON exchanges (workspace_id, lane_id, at DESC, id DESC)
  WHERE tokens_before > 0 AND (compression NOT IN ('', 'none', 'frozen', 'bypassed') OR class = 'after-compaction');
-- The overview asks what kept prompts above their target, which is rare.
CREATE INDEX exchanges_unreachable ON exchanges (workspace_id, at) WHERE compression = 'unreachable';
CREATE INDEX exchanges_compacted ON exchanges (workspace_id, lane_id, at DESC, id DESC) WHERE tokens_before > 0 AND compacted;

-- The exchanges with each tag, by time: a tag that is rare and one that every exchange
-- has are both read in order.
CREATE TABLE exchange_tags (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  tag          text NOT NULL,        -- name=value
  at           timestamptz NOT NULL, -- of the exchange
  exchange_id  uuid NOT NULL,
  PRIMARY KEY (workspace_id, tag, at, exchange_id)
);

-- The sums of a workspace's exchanges, by half hours, by quarters of days and by days of
-- UTC. A row of a part is of one client, model and API key; the others are of all of them. A
-- row never goes with what it counts: when sessions are deleted, what they cost stays.
CREATE TABLE rollups (
  workspace_id         uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  part                 boolean NOT NULL,
  minutes              int NOT NULL CHECK (minutes IN (30, 360, 1440)), -- that the row is long
  at                   timestamptz NOT NULL,         -- where it begins
  client               text NOT NULL,                -- its first 100 characters; empty in rows of all
  model                text NOT NULL,                -- its first 200
  api_key_id           uuid NOT NULL,
  exchanges            bigint NOT NULL,              -- without the product's own calls
  failures             bigint NOT NULL,
  edited               bigint NOT NULL,              -- with a projection
  epochs               bigint NOT NULL,
  epochs_l1            bigint NOT NULL,              -- of them, by the deepest level; neither emergencies nor truncations
  epochs_l2            bigint NOT NULL,
  epochs_l3            bigint NOT NULL,
  emergencies          bigint NOT NULL,
  truncations          bigint NOT NULL,
  unreachable          bigint NOT NULL,              -- no projection reached the target
  compactions          bigint NOT NULL,              -- by clients themselves
  bridged              bigint NOT NULL,
  tokens_before        bigint NOT NULL,
  tokens_after         bigint NOT NULL,
  level_0              bigint NOT NULL,
  level_1              bigint NOT NULL,
  level_2              bigint NOT NULL,
  level_3              bigint NOT NULL,
  input                bigint NOT NULL,
  cache_read           bigint NOT NULL,
  cache_write          bigint NOT NULL,
  output               bigint NOT NULL,
  cost_microusd        bigint NOT NULL,
  net_microusd         bigint NOT NULL,
  unread_microusd      bigint NOT NULL,
  rewritten_microusd   bigint NOT NULL,
  own_microusd         bigint NOT NULL,              -- of the product's own calls: summaries, embeddings
  ttl_expiry           bigint NOT NULL,              -- cache misses by cause, and their tokens
  ttl_expiry_tokens    bigint NOT NULL,
  change_ours          bigint NOT NULL,
  change_ours_tokens   bigint NOT NULL,
  change_client        bigint NOT NULL,
  change_client_tokens bigint NOT NULL,
  cold_start           bigint NOT NULL,
  cold_start_tokens    bigint NOT NULL,
  evicted              bigint NOT NULL,
  evicted_tokens       bigint NOT NULL,
  overheads            int[],                        -- exchanges in each bucket of overhead_bucket, up to the last; NULL: none
  reach                bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (workspace_id, part, minutes, at, client, model, api_key_id)
) WITH (fillfactor = 70); -- rows of now change with every batch

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['exchanges', 'exchange_tags', 'rollups'] LOOP
    EXECUTE format('CREATE POLICY tenant ON %I USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()))', t);
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
  END LOOP;
END $$;
-- +goose StatementEnd

-- What is added up does not change any more: the application may take from an exchange
-- what belonged to its session, and nothing else.
GRANT SELECT, INSERT, UPDATE (session_id, lane_id, provider, endpoint, stream, error_from, error_type, position, window_tokens, ttfb_us,
    duration_us, answer, report, predicted_microusd, provider_key_id, tags, signed, error_text), DELETE
  ON exchanges TO palimpsest_app;
GRANT SELECT, INSERT, DELETE ON exchange_tags TO palimpsest_app;
GRANT SELECT, INSERT, UPDATE ON rollups TO palimpsest_app;

-- The bucket of a histogram that an overhead in microseconds belongs to: 0 below 32 µs,
-- then eight for each doubling.
-- +goose StatementBegin
CREATE FUNCTION overhead_bucket(us bigint) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT CASE WHEN us < 32 THEN 0 ELSE least(200, 1 + floor(8 * ln(us / 32::float8) / ln(2::float8))::int) END $$;
-- +goose StatementEnd

-- The histogram of some buckets, and the sum of two histograms. Every batch of exchanges that
-- is recorded calls them for each of its rollups: as queries they would be planned anew in
-- every statement, and compare each bucket with each exchange.
-- +goose StatementBegin
CREATE FUNCTION overheads_of(buckets int[]) RETURNS int[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  histogram int[] := '{}';
  bucket int;
BEGIN
  IF buckets IS NULL THEN RETURN NULL; END IF;
  FOREACH bucket IN ARRAY buckets LOOP
    WHILE cardinality(histogram) <= bucket LOOP
      histogram[cardinality(histogram) + 1] := 0;
    END LOOP;
    histogram[bucket + 1] := histogram[bucket + 1] + 1;
  END LOOP;
  RETURN histogram;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION overheads_sum(a int[], b int[]) RETURNS int[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  IF a IS NULL OR b IS NULL THEN RETURN coalesce(a, b); END IF;
  IF cardinality(a) < cardinality(b) THEN RETURN overheads_sum(b, a); END IF;
  FOR i IN 1..cardinality(b) LOOP
    a[i] := a[i] + b[i];
  END LOOP;
  RETURN a;
END $$;
-- +goose StatementEnd

-- Whoever adds exchanges adds them up in the same statement.
-- +goose StatementBegin
CREATE FUNCTION add_rollups() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO rollups (
    workspace_id, part, minutes, at, client, model, api_key_id, exchanges, failures, edited, epochs, epochs_l1, epochs_l2,
    epochs_l3, emergencies, truncations, unreachable, compactions, bridged, tokens_before, tokens_after, level_0, level_1, level_2,
    level_3, input, cache_read, cache_write, output, cost_microusd, net_microusd, unread_microusd, rewritten_microusd, own_microusd,
    reach, ttl_expiry, ttl_expiry_tokens, change_ours, change_ours_tokens, change_client, change_client_tokens, cold_start,
    cold_start_tokens, evicted, evicted_tokens, overheads
  )
  SELECT
    workspace_id, part, minutes, date_bin(make_interval(mins => minutes), at, 'epoch'::timestamptz),
    CASE WHEN part THEN left(client, 100) ELSE '' END, CASE WHEN part THEN left(model, 200) ELSE '' END,
    CASE WHEN part THEN api_key_id ELSE '00000000-0000-0000-0000-000000000000' END, count(*) FILTER (WHERE NOT own),
    count(*) FILTER (WHERE NOT own AND status >= 400 AND status <> 499), count(*) FILTER (WHERE projection > 0),
    count(*) FILTER (WHERE compression IN ('epoch', 'emergency', 'truncated')),
    count(*) FILTER (WHERE compression = 'epoch' AND level_2 = 0 AND level_3 = 0),
    count(*) FILTER (WHERE compression = 'epoch' AND level_2 > 0 AND level_3 = 0),
    count(*) FILTER (WHERE compression = 'epoch' AND level_3 > 0), count(*) FILTER (WHERE compression = 'emergency'),
    count(*) FILTER (WHERE compression = 'truncated'), count(*) FILTER (WHERE compression = 'unreachable'),
    count(*) FILTER (WHERE class = 'compaction'), count(*) FILTER (WHERE bridged), sum(tokens_before), sum(tokens_after),
    sum(level_0), sum(level_1), sum(level_2), sum(level_3), sum(input_tokens), sum(cache_read_tokens), sum(cache_write_tokens),
    sum(output_tokens), sum(cost_microusd), sum(net_microusd), sum(unread_microusd), sum(rewritten_microusd),
    coalesce(sum(cost_microusd) FILTER (WHERE own), 0), count(*) FILTER (WHERE reach),
    count(*) FILTER (WHERE miss_cause = 'ttl_expiry'), coalesce(sum(missed_tokens) FILTER (WHERE miss_cause = 'ttl_expiry'), 0),
    count(*) FILTER (WHERE miss_cause = 'prefix_change_ours'),
    coalesce(sum(missed_tokens) FILTER (WHERE miss_cause = 'prefix_change_ours'), 0),
    count(*) FILTER (WHERE miss_cause = 'prefix_change_client'),
    coalesce(sum(missed_tokens) FILTER (WHERE miss_cause = 'prefix_change_client'), 0),
    count(*) FILTER (WHERE miss_cause = 'cold_start'), coalesce(sum(missed_tokens) FILTER (WHERE miss_cause = 'cold_start'), 0),
    count(*) FILTER (WHERE miss_cause = 'provider'), coalesce(sum(missed_tokens) FILTER (WHERE miss_cause = 'provider'), 0),
    overheads_of(array_agg(overhead_bucket(overhead_us)) FILTER (WHERE attempts > 0 AND NOT own))
  FROM (SELECT *, class IN ('summary', 'embedding') AS own FROM added) e
    CROSS JOIN (VALUES (false), (true)) AS parts (part)
    CROSS JOIN (VALUES (30), (360), (1440)) AS widths (minutes)
  GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1, 2, 3, 4, 5, 6, 7
  ON CONFLICT (workspace_id, part, minutes, at, client, model, api_key_id) DO UPDATE SET
    exchanges = rollups.exchanges + EXCLUDED.exchanges, failures = rollups.failures + EXCLUDED.failures,
    edited = rollups.edited + EXCLUDED.edited, epochs = rollups.epochs + EXCLUDED.epochs,
    epochs_l1 = rollups.epochs_l1 + EXCLUDED.epochs_l1, epochs_l2 = rollups.epochs_l2 + EXCLUDED.epochs_l2,
    epochs_l3 = rollups.epochs_l3 + EXCLUDED.epochs_l3, emergencies = rollups.emergencies + EXCLUDED.emergencies,
    truncations = rollups.truncations + EXCLUDED.truncations, unreachable = rollups.unreachable + EXCLUDED.unreachable,
    compactions = rollups.compactions + EXCLUDED.compactions, bridged = rollups.bridged + EXCLUDED.bridged,
    tokens_before = rollups.tokens_before + EXCLUDED.tokens_before, tokens_after = rollups.tokens_after + EXCLUDED.tokens_after,
    level_0 = rollups.level_0 + EXCLUDED.level_0, level_1 = rollups.level_1 + EXCLUDED.level_1,
    level_2 = rollups.level_2 + EXCLUDED.level_2, level_3 = rollups.level_3 + EXCLUDED.level_3,
    input = rollups.input + EXCLUDED.input, cache_read = rollups.cache_read + EXCLUDED.cache_read,
    cache_write = rollups.cache_write + EXCLUDED.cache_write, output = rollups.output + EXCLUDED.output,
    cost_microusd = rollups.cost_microusd + EXCLUDED.cost_microusd, net_microusd = rollups.net_microusd + EXCLUDED.net_microusd,
    unread_microusd = rollups.unread_microusd + EXCLUDED.unread_microusd,
    rewritten_microusd = rollups.rewritten_microusd + EXCLUDED.rewritten_microusd,
    own_microusd = rollups.own_microusd + EXCLUDED.own_microusd, reach = rollups.reach + EXCLUDED.reach,
    ttl_expiry = rollups.ttl_expiry + EXCLUDED.ttl_expiry,
    ttl_expiry_tokens = rollups.ttl_expiry_tokens + EXCLUDED.ttl_expiry_tokens,
    change_ours = rollups.change_ours + EXCLUDED.change_ours,
    change_ours_tokens = rollups.change_ours_tokens + EXCLUDED.change_ours_tokens,
    change_client = rollups.change_client + EXCLUDED.change_client,
    change_client_tokens = rollups.change_client_tokens + EXCLUDED.change_client_tokens,
    cold_start = rollups.cold_start + EXCLUDED.cold_start,
    cold_start_tokens = rollups.cold_start_tokens + EXCLUDED.cold_start_tokens, evicted = rollups.evicted + EXCLUDED.evicted,
    evicted_tokens = rollups.evicted_tokens + EXCLUDED.evicted_tokens,
    overheads = overheads_sum(rollups.overheads, EXCLUDED.overheads);
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER rollups AFTER INSERT ON exchanges REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION add_rollups();

-- Sessions with a request that failed or was truncated are marked.
-- +goose StatementBegin
CREATE FUNCTION mark_failed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE sessions s SET failed = true
    FROM (SELECT DISTINCT workspace_id, session_id FROM added WHERE status >= 400 OR compression = 'truncated') f
    WHERE s.workspace_id = f.workspace_id AND s.id = f.session_id AND NOT s.failed;
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER session_failed AFTER INSERT ON exchanges REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION mark_failed();

-- +goose Down
DROP TABLE rollups, exchange_tags, exchanges;
DROP FUNCTION mark_failed(), add_rollups(), overheads_sum(int[], int[]), overheads_of(int[]), overhead_bucket(bigint);
