-- +goose Up

-- What modules made lately, for the page of the pipeline.
CREATE INDEX lane_inserts_put ON lane_inserts (workspace_id, put_at) INCLUDE (module);
CREATE INDEX summaries_created ON summaries (workspace_id, created_at) INCLUDE (status);

DROP FUNCTION operator_workspaces;

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

-- It belongs to the role that the operator's functions belong to, which reads what it
-- counts and nothing else.
-- +goose StatementBegin
DO $$
DECLARE
  door    CONSTANT name := (SELECT r.rolname FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner
    WHERE p.proname = 'claim_operator' AND p.pronamespace = 'public'::regnamespace);
  granted boolean := false;
BEGIN
  EXECUTE format('CREATE POLICY operator ON rollups FOR SELECT TO %I USING (true)', door);
  IF door = current_user THEN
    RETURN;
  END IF;
  EXECUTE format('GRANT SELECT (workspace_id, part, minutes, at, exchanges, failures, input, cache_read, cache_write, output) ON rollups TO %I', door);
  EXECUTE format('REVOKE SELECT (status, input_tokens, cache_read_tokens, cache_write_tokens, output_tokens) ON exchanges FROM %I', door);
  IF NOT pg_has_role(current_user, door, 'MEMBER') THEN
    EXECUTE format('GRANT %I TO %I', door, current_user);
    granted := true;
  END IF;
  EXECUTE format('GRANT CREATE ON SCHEMA public TO %I', door);
  EXECUTE format('ALTER FUNCTION operator_workspaces OWNER TO %I', door);
  EXECUTE format('REVOKE CREATE ON SCHEMA public FROM %I', door);
  IF granted THEN
    EXECUTE format('REVOKE %I FROM %I', door, current_user);
  END IF;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP INDEX lane_inserts_put, summaries_created;
DROP FUNCTION operator_workspaces;
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
    (SELECT max(x.at) FROM public.exchanges x WHERE x.workspace_id = l.workspace_id),
    (SELECT coalesce(sum(a.size), 0)::bigint FROM public.archive_objects a WHERE a.workspace_id = l.workspace_id),
    s.since, coalesce(s.reason, '')
  FROM listed l
  CROSS JOIN LATERAL (
    SELECT count(*) AS total, count(*) FILTER (WHERE x.status >= 400 AND x.status <> 499) AS failed,
      coalesce(sum(x.input_tokens::bigint + x.cache_read_tokens + x.cache_write_tokens + x.output_tokens), 0)::bigint AS tokens
    FROM public.exchanges x WHERE x.workspace_id = l.workspace_id AND x.at > now() - interval '30 days'
  ) e
  LEFT JOIN public.suspensions s ON s.workspace_id = l.workspace_id
  ORDER BY l.created_at DESC, l.workspace_id DESC;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
DO $$
DECLARE
  door    CONSTANT name := (SELECT r.rolname FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner
    WHERE p.proname = 'claim_operator' AND p.pronamespace = 'public'::regnamespace);
  granted boolean := false;
BEGIN
  DROP POLICY operator ON rollups;
  IF door = current_user THEN
    RETURN;
  END IF;
  EXECUTE format('REVOKE SELECT (workspace_id, part, minutes, at, exchanges, failures, input, cache_read, cache_write, output) ON rollups FROM %I', door);
  EXECUTE format('GRANT SELECT (status, input_tokens, cache_read_tokens, cache_write_tokens, output_tokens) ON exchanges TO %I', door);
  IF NOT pg_has_role(current_user, door, 'MEMBER') THEN
    EXECUTE format('GRANT %I TO %I', door, current_user);
    granted := true;
  END IF;
  EXECUTE format('GRANT CREATE ON SCHEMA public TO %I', door);
  EXECUTE format('ALTER FUNCTION operator_workspaces OWNER TO %I', door);
  EXECUTE format('REVOKE CREATE ON SCHEMA public FROM %I', door);
  IF granted THEN
    EXECUTE format('REVOKE %I FROM %I', door, current_user);
  END IF;
END $$;
-- +goose StatementEnd
