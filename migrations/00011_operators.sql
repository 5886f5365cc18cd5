-- +goose Up

-- Who runs the installation, and what they see of it.

-- Who runs the installation. The application reads its own row of whoever is logged
-- in; only the functions below add one.
CREATE TABLE operators (
  user_id uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
  since   timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Workspaces whose keys and pages are refused. Nothing of them is deleted.
CREATE TABLE suspensions (
  workspace_id uuid PRIMARY KEY REFERENCES workspaces ON DELETE CASCADE,
  reason       text NOT NULL, -- members read it
  since        timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- What operators did. It stays when the workspace that it speaks of is deleted.
CREATE TABLE operator_entries (
  id      uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  user_id uuid,                     -- NULL: the command line
  actor   text NOT NULL,            -- address of the operator, as it was then
  address text NOT NULL DEFAULT '', -- of the client
  action  text NOT NULL,
  target  text NOT NULL,            -- id of the workspace or the person
  name    text NOT NULL,            -- of it, as it was then
  reason  text NOT NULL DEFAULT ''
);
CREATE INDEX operator_entries_at ON operator_entries (at DESC, id DESC);

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['suspensions'] LOOP
    EXECUTE format('CREATE POLICY tenant ON %I USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()))', t);
  END LOOP;
  FOREACH t IN ARRAY ARRAY['operators', 'suspensions', 'operator_entries'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
  END LOOP;
END $$;
-- +goose StatementEnd

CREATE POLICY own ON operators USING (user_id = (SELECT app_user())) WITH CHECK (user_id = (SELECT app_user()));
CREATE POLICY own_workspaces ON suspensions FOR SELECT
  USING (workspace_id IN (SELECT m.workspace_id FROM members m WHERE m.user_id = (SELECT app_user())));
CREATE POLICY nobody ON operator_entries USING (false) WITH CHECK (false);
GRANT SELECT ON operators, suspensions, operator_entries TO palimpsest_app;

-- What an operator sees and does goes through the functions below alone. They belong
-- to a role that may read the columns that they count, and no others: no text, no
-- title, no key, whatever the functions say.

-- claim_operator makes the first person of an installation its operator, in the
-- transaction that signs them up, and says whether it did.
-- +goose StatementBegin
CREATE FUNCTION claim_operator() RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE person CONSTANT uuid := public.app_user();
BEGIN
  IF person IS NULL THEN
    RAISE EXCEPTION 'nobody signs up' USING ERRCODE = '42501';
  END IF;
  IF EXISTS (SELECT FROM public.users u WHERE u.id <> person) THEN
    RETURN false;
  END IF;
  -- Of several who are the first, one is: the others see it once it has committed.
  PERFORM pg_advisory_xact_lock(7152663092);
  IF EXISTS (SELECT FROM public.users u WHERE u.id <> person) OR EXISTS (SELECT FROM public.operators) THEN
    RETURN false;
  END IF;
  INSERT INTO public.operators (user_id) SELECT u.id FROM public.users u WHERE u.id = person;
  INSERT INTO public.operator_entries (user_id, actor, action, target, name)
    SELECT u.id, u.email, 'operator.first', u.id::text, u.email FROM public.users u WHERE u.id = person;
  RETURN FOUND;
END $$;
-- +goose StatementEnd

-- appoint_operator makes a person an operator, from the command line.
-- +goose StatementBegin
CREATE FUNCTION appoint_operator(person uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO public.operators (user_id) VALUES (person) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO public.operator_entries (actor, action, target, name)
    SELECT 'command line', 'operator.appointed', u.id::text, u.email FROM public.users u WHERE u.id = person;
  RETURN true;
END $$;
-- +goose StatementEnd

-- require_operator refuses a transaction that does not work for an operator.
-- +goose StatementBegin
CREATE FUNCTION require_operator() RETURNS void LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM public.operators o WHERE o.user_id = public.app_user()) THEN
    RAISE EXCEPTION 'not an operator' USING ERRCODE = '42501';
  END IF;
END $$;
-- +goose StatementEnd

-- operator_workspaces returns workspaces with figures of the last 30 days and of today, in
-- UTC, the newest first, after a place in that order; with a wanted text in their name,
-- their id or their owner's address. The figures are sums that are kept: no exchange is
-- read but the newest, which is looked for where the newest sum says that it is.
-- +goose StatementBegin
CREATE FUNCTION operator_workspaces(wanted text, before_at timestamptz, before_id uuid, only_id uuid, most int)
RETURNS TABLE (id uuid, workspace_name text, created timestamptz, owner text, member_count bigint, exchange_count bigint, failure_count bigint,
  token_count bigint, last_exchange timestamptz, archived bigint, suspended_since timestamptz, suspended_reason text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM public.require_operator();
  RETURN QUERY
  WITH listed AS MATERIALIZED (
    SELECT w.workspace_id, w.name, w.created_at, coalesce(o.email, '') AS email
    FROM public.workspaces w
    LEFT JOIN LATERAL (
      SELECT u.email FROM public.members m JOIN public.users u ON u.id = m.user_id
      WHERE m.workspace_id = w.workspace_id AND m.role = 'owner' ORDER BY m.created_at, m.user_id LIMIT 1
    ) o ON true
    WHERE (only_id IS NULL OR w.workspace_id = only_id)
      AND (before_at IS NULL OR (w.created_at, w.workspace_id) < (before_at, before_id))
      AND (wanted = '' OR strpos(lower(w.name), lower(wanted)) > 0 OR strpos(o.email, lower(wanted)) > 0 OR w.workspace_id::text = lower(wanted))
    ORDER BY w.created_at DESC, w.workspace_id DESC LIMIT most
  )
  SELECT l.workspace_id, l.name, l.created_at, l.email,
    (SELECT count(*) FROM public.members m WHERE m.workspace_id = l.workspace_id),
    e.total, e.failed, e.tokens,
    (SELECT coalesce((SELECT max(x.at) FROM public.exchanges x WHERE x.workspace_id = l.workspace_id AND x.at >= n.at), n.at)
      FROM (SELECT max(r.at) AS at FROM public.rollups r WHERE r.workspace_id = l.workspace_id AND NOT r.part AND r.minutes = 30) n),
    (SELECT coalesce(sum(a.size), 0)::bigint FROM public.archive_objects a WHERE a.workspace_id = l.workspace_id),
    s.since, coalesce(s.reason, '')
  FROM listed l
  CROSS JOIN LATERAL (
    SELECT coalesce(sum(r.exchanges), 0)::bigint AS total, coalesce(sum(r.failures), 0)::bigint AS failed,
      coalesce(sum(r.input + r.cache_read + r.cache_write + r.output), 0)::bigint AS tokens
    FROM public.rollups r WHERE r.workspace_id = l.workspace_id AND NOT r.part AND r.minutes = 1440
      AND r.at >= date_bin(interval '1 day', now() - interval '30 days', 'epoch'::timestamptz)
  ) e
  LEFT JOIN public.suspensions s ON s.workspace_id = l.workspace_id
  ORDER BY l.created_at DESC, l.workspace_id DESC;
END $$;
-- +goose StatementEnd

-- operator_suspend suspends a workspace, or resumes it, and notes that with the
-- operator and with the workspace. It says whether there is such a workspace.
-- +goose StatementBegin
CREATE FUNCTION operator_suspend(of_workspace uuid, suspend boolean, why text, client text, entry uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  called text;
  action CONSTANT text := CASE WHEN suspend THEN 'workspace.suspended' ELSE 'workspace.resumed' END;
BEGIN
  PERFORM public.require_operator();
  SELECT w.name INTO called FROM public.workspaces w WHERE w.workspace_id = of_workspace;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  IF suspend THEN
    INSERT INTO public.suspensions (workspace_id, reason) VALUES (of_workspace, why) ON CONFLICT DO NOTHING;
  ELSE
    DELETE FROM public.suspensions s WHERE s.workspace_id = of_workspace;
  END IF;
  IF NOT FOUND THEN
    RETURN true; -- as it is already
  END IF;
  INSERT INTO public.operator_entries (user_id, actor, address, action, target, name, reason)
    SELECT u.id, u.email, client, action, of_workspace::text, called, why FROM public.users u WHERE u.id = public.app_user();
  INSERT INTO public.audit_entries (workspace_id, id, actor, action, target, before, after)
    VALUES (of_workspace, entry, 'operator', action, of_workspace::text,
      CASE WHEN suspend THEN NULL ELSE jsonb_build_object('state', 'suspended') END,
      jsonb_build_object('state', CASE WHEN suspend THEN 'suspended' ELSE 'active' END, 'reason', why));
  RETURN true;
END $$;
-- +goose StatementEnd

-- operator_log returns what operators did, the newest first.
-- +goose StatementBegin
CREATE FUNCTION operator_log(most int) RETURNS SETOF operator_entries
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM public.require_operator();
  RETURN QUERY SELECT * FROM public.operator_entries e ORDER BY e.at DESC, e.id DESC LIMIT most;
END $$;
-- +goose StatementEnd

-- workspace_standing says of a workspace whether it is suspended, and whether one of
-- its owners has a verified address.
-- +goose StatementBegin
CREATE FUNCTION workspace_standing(of_workspace uuid, OUT suspended boolean, OUT verified boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT EXISTS (SELECT FROM public.suspensions s WHERE s.workspace_id = of_workspace),
    EXISTS (SELECT FROM public.members m JOIN public.users u ON u.id = m.user_id
      WHERE m.workspace_id = of_workspace AND m.role = 'owner' AND u.verified_at IS NOT NULL)
$$;
-- +goose StatementEnd

-- note_subscription_end notes whether a subscription whose workspace is gone was ended.
-- +goose StatementBegin
CREATE FUNCTION note_subscription_end(of_customer text, ended boolean, why text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO public.operator_entries (actor, action, target, name, reason)
    VALUES ('billing', CASE WHEN ended THEN 'subscription.ended' ELSE 'subscription.not_ended' END, of_customer, of_customer, why);
END $$;
-- +goose StatementEnd

-- Since when the oldest original waits to be moved into the bucket, in any workspace.
-- +goose StatementBegin
CREATE FUNCTION archive_waits_since() RETURNS timestamptz
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT min(oldest.created_at) FROM public.workspaces w, LATERAL (
    SELECT o.created_at FROM public.archive_objects o WHERE o.workspace_id = w.workspace_id AND o.place = 0
    ORDER BY o.created_at LIMIT 1) oldest
$$;
-- +goose StatementEnd

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

-- The owner alone appoints operators, which the command line logs in as; the others are for
-- the role that needs them, and for no other login of the cluster.
REVOKE EXECUTE ON FUNCTION claim_operator(), appoint_operator(uuid), operator_workspaces, operator_suspend, operator_log(int),
  workspace_standing(uuid), note_subscription_end(text, boolean, text), archive_waits_since(), replication_lags() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION claim_operator(), workspace_standing(uuid) TO palimpsest_app;
GRANT EXECUTE ON FUNCTION operator_workspaces, operator_suspend, operator_log(int), note_subscription_end(text, boolean, text),
  archive_waits_since(), replication_lags() TO palimpsest_worker;

-- The role logs in nowhere. Where the owner of the database may not make it, the owner
-- is the role, as with the search.
-- +goose StatementBegin
DO $$
DECLARE
  maker   CONSTANT name := current_user;
  door    name := 'palimpsest_operator';
  granted boolean := false;
  t       text;
BEGIN
  BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = door) THEN
      CREATE ROLE palimpsest_operator NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE NOINHERIT;
    END IF;
    IF NOT pg_has_role(current_user, door, 'MEMBER') THEN
      EXECUTE format('GRANT %I TO %I', door, current_user);
      granted := true;
    END IF;
  EXCEPTION
    WHEN duplicate_object OR unique_violation THEN NULL; -- another database of the cluster made it just now
    WHEN insufficient_privilege THEN door := current_user;
  END;
  FOREACH t IN ARRAY ARRAY['users', 'workspaces', 'members', 'exchanges', 'rollups', 'archive_objects'] LOOP
    EXECUTE format('CREATE POLICY operator ON %I FOR SELECT TO %I USING (true)', t, door);
  END LOOP;
  FOREACH t IN ARRAY ARRAY['operators', 'suspensions', 'operator_entries'] LOOP
    EXECUTE format('CREATE POLICY operator ON %I TO %I USING (true) WITH CHECK (true)', t, door);
  END LOOP;
  EXECUTE format('CREATE POLICY operator ON audit_entries FOR INSERT TO %I WITH CHECK (actor = ''operator'')', door);
  IF door <> maker THEN
    EXECUTE format('GRANT SELECT (id, email, verified_at) ON users TO %I', door);
    EXECUTE format('GRANT SELECT (workspace_id, name, created_at) ON workspaces TO %I', door);
    EXECUTE format('GRANT SELECT (workspace_id, user_id, role, created_at) ON members TO %I', door);
    EXECUTE format('GRANT SELECT (workspace_id, at) ON exchanges TO %I', door);
    EXECUTE format('GRANT SELECT (workspace_id, part, minutes, at, exchanges, failures, input, cache_read, cache_write, output) ON rollups TO %I', door);
    EXECUTE format('GRANT SELECT (workspace_id, size, place, created_at) ON archive_objects TO %I', door);
    EXECUTE format('GRANT INSERT (workspace_id, id, actor, action, target, before, after) ON audit_entries TO %I', door);
    EXECUTE format('GRANT SELECT, INSERT ON operators, operator_entries TO %I', door);
    EXECUTE format('GRANT SELECT, INSERT, DELETE ON suspensions TO %I', door);
    EXECUTE format('GRANT USAGE, CREATE ON SCHEMA public TO %I', door);
    FOREACH t IN ARRAY ARRAY['claim_operator', 'appoint_operator', 'operator_workspaces', 'operator_suspend', 'operator_log', 'workspace_standing',
      'note_subscription_end', 'archive_waits_since'] LOOP
      EXECUTE format('ALTER FUNCTION %I OWNER TO %I', t, door);
    END LOOP;
    EXECUTE format('REVOKE CREATE ON SCHEMA public FROM %I', door);
    EXECUTE format('GRANT EXECUTE ON FUNCTION appoint_operator(uuid) TO %I', maker);
  END IF;
  IF granted THEN
    EXECUTE format('REVOKE %I FROM %I', door, current_user);
  END IF;
END $$;
-- +goose StatementEnd

-- +goose Down
-- The role stays, because other databases of the cluster may use it.
DROP FUNCTION replication_lags(), archive_waits_since(), note_subscription_end(text, boolean, text), workspace_standing(uuid), operator_log(int),
  operator_suspend, operator_workspaces, require_operator(), appoint_operator(uuid), claim_operator();
DROP TABLE operator_entries, suspensions, operators;
-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['users', 'workspaces', 'members', 'exchanges', 'rollups', 'archive_objects', 'audit_entries'] LOOP
    EXECUTE format('DROP POLICY operator ON %I', t);
  END LOOP;
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'palimpsest_operator') THEN
    REVOKE ALL (id, email, verified_at) ON users FROM palimpsest_operator;
    REVOKE ALL (workspace_id, name, created_at) ON workspaces FROM palimpsest_operator;
    REVOKE ALL (workspace_id, user_id, role, created_at) ON members FROM palimpsest_operator;
    REVOKE ALL (workspace_id, at) ON exchanges FROM palimpsest_operator;
    REVOKE ALL (workspace_id, part, minutes, at, exchanges, failures, input, cache_read, cache_write, output) ON rollups FROM palimpsest_operator;
    REVOKE ALL (workspace_id, size, place, created_at) ON archive_objects FROM palimpsest_operator;
    REVOKE ALL (workspace_id, id, actor, action, target, before, after) ON audit_entries FROM palimpsest_operator;
    REVOKE USAGE ON SCHEMA public FROM palimpsest_operator;
  END IF;
END $$;
-- +goose StatementEnd
