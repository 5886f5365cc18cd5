-- +goose NO TRANSACTION
-- +goose Up

-- A lane is never its own parent. With several replicas, one could become that, and no request of its workspace was
-- stored from then on. Such a lane becomes a lane without a parent.
ALTER TABLE lanes DROP CONSTRAINT IF EXISTS lanes_own_parent, ADD CONSTRAINT lanes_own_parent CHECK (parent_id <> id) NOT VALID;

-- The owner is bound by the policies, too, and works for one workspace after the other.
-- +goose StatementBegin
DO $migration$
DECLARE
  all_workspaces uuid[];
  workspace uuid;
BEGIN
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
    UPDATE lanes SET parent_id = NULL, fork_at = 0, fork_epoch = 0, fork_insert = 0 WHERE workspace_id = workspace AND parent_id = id;
    COMMIT;
  END LOOP;
END $migration$;
-- +goose StatementEnd

ALTER TABLE lanes VALIDATE CONSTRAINT lanes_own_parent;

-- +goose Down
ALTER TABLE lanes DROP CONSTRAINT IF EXISTS lanes_own_parent;
