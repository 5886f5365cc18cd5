-- +goose NO TRANSACTION
-- +goose Up

-- The description of a call that printed next to nothing counts less than it did. Terms of languages
-- other than English have changed: accents, widths and endings no longer tell words apart, and scripts
-- without spaces are cut otherwise. All lanes are indexed again, in the background; what was indexed
-- stays found until then.
--
-- The owner is bound by the policies, too. To see which workspaces have something it takes itself out
-- of those of archive_indexed, with a lock on that table alone, for a moment. Then it works for one
-- workspace after the other, in short transactions. A second try goes on where the first one ended.
-- +goose StatementBegin
DO $migration$
DECLARE
  batch CONSTANT int := 2000;
  nil   CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
  workspaces uuid[];
  workspace  uuid;
  lane       uuid;
  lanes      uuid[];
BEGIN
  FOR try IN 1..200 LOOP
    BEGIN
      SET LOCAL lock_timeout = '250ms';
      ALTER TABLE archive_indexed NO FORCE ROW LEVEL SECURITY;
      WITH RECURSIVE indexed AS (
        (SELECT workspace_id FROM archive_indexed ORDER BY workspace_id LIMIT 1)
        UNION ALL
        SELECT (SELECT i.workspace_id FROM archive_indexed i WHERE i.workspace_id > indexed.workspace_id ORDER BY i.workspace_id LIMIT 1)
        FROM indexed WHERE indexed.workspace_id IS NOT NULL
      ) SELECT coalesce(array_agg(workspace_id) FILTER (WHERE workspace_id IS NOT NULL), '{}') INTO workspaces FROM indexed;
      ALTER TABLE archive_indexed FORCE ROW LEVEL SECURITY;
      EXIT;
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
      IF try = 200 THEN RAISE; END IF;
      PERFORM pg_sleep(0.1);
    END;
  END LOOP;
  COMMIT;

  FOREACH workspace IN ARRAY workspaces LOOP
    lane := nil;
    LOOP
      PERFORM set_config('app.workspace_id', workspace::text, true);
      -- A lane that is being deleted is waited for here, before anything else is locked.
      SELECT array_agg(next.id ORDER BY next.id) INTO lanes FROM (
        SELECT l.id FROM archive_indexed i JOIN lanes l ON l.workspace_id = i.workspace_id AND l.id = i.lane_id
        WHERE i.workspace_id = workspace AND i.lane_id > lane ORDER BY i.lane_id LIMIT batch FOR KEY SHARE OF l
      ) next;
      EXIT WHEN lanes IS NULL;
      -- In the order in which the job locks them.
      WITH gone AS (DELETE FROM archive_indexed WHERE workspace_id = workspace AND lane_id = ANY (lanes) RETURNING lane_id)
      INSERT INTO archive_unindexed (workspace_id, lane_id) SELECT workspace, gone.lane_id FROM gone ORDER BY gone.lane_id
      ON CONFLICT (workspace_id, lane_id) DO UPDATE SET number = archive_unindexed.number + 1;
      lane := lanes[cardinality(lanes)];
      COMMIT;
    END LOOP;
    COMMIT;
  END LOOP;
END $migration$;
-- +goose StatementEnd

-- +goose Down
SELECT 1;
