-- +goose Up

-- Since when a lane waits to be indexed. Unlike since, which says whose turn it is, it stays
-- when the lane fails and goes to the end of the queue.
ALTER TABLE archive_unindexed ADD COLUMN waits_since timestamptz NOT NULL DEFAULT now();

-- Since when the oldest original waits to be moved into the bucket, in any workspace.
-- +goose StatementBegin
CREATE FUNCTION archive_waits_since() RETURNS timestamptz
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT min(oldest.created_at) FROM public.workspaces w, LATERAL (
    SELECT o.created_at FROM public.archive_objects o WHERE o.workspace_id = w.workspace_id AND o.place = 0
    ORDER BY o.created_at LIMIT 1) oldest
$$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION archive_waits_since() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION archive_waits_since() TO palimpsest_worker;

-- How far each standby is behind, and each slot whose standby is gone. A standby that has
-- stopped answering keeps the delay it reported last, so the time since its last reply counts
-- as well. The owner needs pg_monitor: without it, the figures of standbys are NULL.
-- +goose StatementBegin
CREATE FUNCTION replication_lags() RETURNS TABLE (standby text, seconds double precision, bytes double precision)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pg_is_in_recovery() THEN
    RETURN QUERY SELECT 'this server'::text,
      CASE WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0
        ELSE extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())::double precision END,
      pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())::double precision;
    RETURN;
  END IF;
  RETURN QUERY
    SELECT coalesce(s.slot_name::text, nullif(r.application_name, ''), host(r.client_addr), 'standby'),
      CASE WHEN r.replay_lsn >= pg_current_wal_lsn() THEN 0
        ELSE greatest(extract(epoch FROM r.replay_lag), extract(epoch FROM clock_timestamp() - r.reply_time), 0)::double precision END,
      greatest(pg_wal_lsn_diff(pg_current_wal_lsn(), r.replay_lsn), 0)::double precision
    FROM pg_stat_replication r LEFT JOIN pg_replication_slots s ON s.active_pid = r.pid
    UNION ALL
    SELECT s.slot_name::text, NULL, pg_wal_lsn_diff(pg_current_wal_lsn(), coalesce(s.confirmed_flush_lsn, s.restart_lsn))::double precision
    FROM pg_replication_slots s WHERE NOT s.active AND NOT s.temporary;
END $$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION replication_lags() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION replication_lags() TO palimpsest_worker;

-- The first function reads across workspaces, so it belongs to the operators' role.
-- +goose StatementBegin
DO $$
DECLARE
  door    CONSTANT name := (SELECT r.rolname FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner
    WHERE p.proname = 'claim_operator' AND p.pronamespace = 'public'::regnamespace);
  granted boolean := false;
BEGIN
  IF door = current_user THEN
    RETURN;
  END IF;
  IF NOT pg_has_role(current_user, door, 'MEMBER') THEN
    EXECUTE format('GRANT %I TO %I', door, current_user);
    granted := true;
  END IF;
  EXECUTE format('GRANT SELECT (place, created_at) ON archive_objects TO %I', door);
  EXECUTE format('GRANT CREATE ON SCHEMA public TO %I', door);
  EXECUTE format('ALTER FUNCTION archive_waits_since() OWNER TO %I', door);
  EXECUTE format('REVOKE CREATE ON SCHEMA public FROM %I', door);
  IF granted THEN
    EXECUTE format('REVOKE %I FROM %I', door, current_user);
  END IF;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION replication_lags();
DROP FUNCTION archive_waits_since();
ALTER TABLE archive_unindexed DROP COLUMN waits_since;
