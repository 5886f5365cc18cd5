-- +goose Up

-- A question to the archive and a look-up of an answer read these by exact keys, as each
-- request of a new session reads those of 00037.
ALTER TABLE archive_documents ALTER workspace_id SET STATISTICS 0;
ALTER TABLE cached_answers ALTER workspace_id SET STATISTICS 0;

-- What was known of a column stays when nothing more is taken of it, so that a workspace
-- that came later is still taken for one row. Where the tables' owner may not delete that
-- (PostgreSQL before 18, where the owner is no superuser), it stays.
-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['lane_heads', 'archive_objects', 'archive_entries', 'archive_documents', 'cached_answers'] LOOP
    IF current_setting('server_version_num')::int >= 180000 THEN
      EXECUTE format('SELECT pg_clear_attribute_stats(%L, %L, ''workspace_id'', false)', current_schema(), t);
    ELSE
      DELETE FROM pg_statistic WHERE starelid = t::regclass
        AND staattnum = (SELECT attnum FROM pg_attribute WHERE attrelid = t::regclass AND attname = 'workspace_id');
    END IF;
  END LOOP;
EXCEPTION WHEN insufficient_privilege THEN
  RAISE WARNING 'the statistics of workspaces stay: a superuser may delete them from pg_statistic';
END $$;
-- +goose StatementEnd

-- +goose Down
ALTER TABLE archive_documents ALTER workspace_id SET STATISTICS -1;
ALTER TABLE cached_answers ALTER workspace_id SET STATISTICS -1;
