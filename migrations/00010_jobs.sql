-- +goose Up

-- Work off the request path. The tables are those of riverqueue/river v0.51.0, line
-- main, versions 1 to 8, as one step. They belong to the product and not to a tenant:
-- a job names a workspace and a lane, and holds nothing of what they hold. They have a
-- schema of their own, so that every table of public is under row-level security.
CREATE SCHEMA jobs;

CREATE TABLE jobs.river_migration (
  line       text NOT NULL,
  version    bigint NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT line_length CHECK (char_length(line) > 0 AND char_length(line) < 128),
  CONSTRAINT version_gte_1 CHECK (version >= 1),
  PRIMARY KEY (line, version)
);
INSERT INTO jobs.river_migration (line, version) SELECT 'main', generate_series(1, 8);

CREATE TYPE jobs.river_job_state AS ENUM
  ('available', 'cancelled', 'completed', 'discarded', 'pending', 'retryable', 'running', 'scheduled');

CREATE TABLE jobs.river_job (
  id            bigserial PRIMARY KEY,
  state         jobs.river_job_state NOT NULL DEFAULT 'available',
  attempt       smallint NOT NULL DEFAULT 0,
  max_attempts  smallint NOT NULL DEFAULT 25,
  attempted_at  timestamptz,
  created_at    timestamptz NOT NULL DEFAULT now(),
  finalized_at  timestamptz,
  scheduled_at  timestamptz NOT NULL DEFAULT now(),
  priority      smallint NOT NULL DEFAULT 1,
  args          jsonb NOT NULL,
  attempted_by  text[],
  errors        jsonb[],
  kind          text NOT NULL,
  metadata      jsonb NOT NULL DEFAULT '{}',
  queue         text NOT NULL DEFAULT 'default',
  tags          varchar(255)[] NOT NULL DEFAULT '{}',
  unique_key    bytea,
  unique_states bit(8),
  CONSTRAINT finalized_or_finalized_at_null CHECK (
    (finalized_at IS NULL AND state NOT IN ('cancelled', 'completed', 'discarded')) OR
    (finalized_at IS NOT NULL AND state IN ('cancelled', 'completed', 'discarded'))),
  CONSTRAINT max_attempts_is_positive CHECK (max_attempts > 0),
  CONSTRAINT priority_in_range CHECK (priority >= 1 AND priority <= 4),
  CONSTRAINT queue_length CHECK (char_length(queue) > 0 AND char_length(queue) < 128),
  CONSTRAINT kind_length CHECK (char_length(kind) > 0 AND char_length(kind) < 128)
);
CREATE INDEX river_job_kind ON jobs.river_job (kind);
CREATE INDEX river_job_state_and_finalized_at_index ON jobs.river_job (state, finalized_at) WHERE finalized_at IS NOT NULL;
CREATE INDEX river_job_prioritized_fetching_index ON jobs.river_job (state, queue, priority, scheduled_at, id);
CREATE INDEX river_job_args_index ON jobs.river_job USING gin (args);
CREATE INDEX river_job_metadata_index ON jobs.river_job USING gin (metadata);

CREATE FUNCTION jobs.river_job_state_in_bitmask(bitmask bit(8), state jobs.river_job_state) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE state
    WHEN 'available' THEN get_bit(bitmask, 7)
    WHEN 'cancelled' THEN get_bit(bitmask, 6)
    WHEN 'completed' THEN get_bit(bitmask, 5)
    WHEN 'discarded' THEN get_bit(bitmask, 4)
    WHEN 'pending'   THEN get_bit(bitmask, 3)
    WHEN 'retryable' THEN get_bit(bitmask, 2)
    WHEN 'running'   THEN get_bit(bitmask, 1)
    WHEN 'scheduled' THEN get_bit(bitmask, 0)
    ELSE 0
  END = 1
$$;

CREATE UNIQUE INDEX river_job_unique_idx ON jobs.river_job (unique_key)
  WHERE unique_key IS NOT NULL AND unique_states IS NOT NULL AND jobs.river_job_state_in_bitmask(unique_states, state);

CREATE UNLOGGED TABLE jobs.river_leader (
  elected_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  leader_id  text NOT NULL,
  name       text PRIMARY KEY DEFAULT 'default',
  CONSTRAINT name_length CHECK (name = 'default'),
  CONSTRAINT leader_id_length CHECK (char_length(leader_id) > 0 AND char_length(leader_id) < 128)
);

CREATE TABLE jobs.river_queue (
  name       text PRIMARY KEY,
  created_at timestamptz NOT NULL DEFAULT now(),
  metadata   jsonb NOT NULL DEFAULT '{}',
  paused_at  timestamptz,
  updated_at timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE jobs.river_notification (
  id         bigserial PRIMARY KEY,
  created_at timestamptz NOT NULL DEFAULT now(),
  payload    text NOT NULL,
  topic      text NOT NULL,
  CONSTRAINT topic_length CHECK (length(topic) > 0 AND length(topic) < 128)
);
CREATE INDEX river_notification_created_at_idx ON jobs.river_notification (created_at);
CREATE INDEX river_notification_topic_id_idx ON jobs.river_notification (topic, id);

GRANT USAGE ON SCHEMA jobs TO palimpsest_app, palimpsest_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON jobs.river_job, jobs.river_leader, jobs.river_queue TO palimpsest_app, palimpsest_worker;
GRANT USAGE ON SEQUENCE jobs.river_job_id_seq TO palimpsest_app, palimpsest_worker;

-- Jobs contain workspace IDs. Requests see and add jobs of their own workspace only, and
-- names of job kinds.
-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['river_job', 'river_leader', 'river_queue'] LOOP
    EXECUTE format('CREATE POLICY worker ON jobs.%I TO palimpsest_worker USING (true) WITH CHECK (true)', t);
    EXECUTE format('ALTER TABLE jobs.%I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE jobs.%I FORCE ROW LEVEL SECURITY', t);
  END LOOP;
END $$;
-- +goose StatementEnd

CREATE POLICY names ON jobs.river_queue FOR SELECT TO palimpsest_app USING (true);
CREATE POLICY tenant ON jobs.river_job TO palimpsest_app
  USING (args->>'workspace' = (SELECT app_workspace())::text) WITH CHECK (args->>'workspace' = (SELECT app_workspace())::text);

-- +goose Down
DROP SCHEMA jobs CASCADE;
