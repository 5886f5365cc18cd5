-- +goose Up

-- Whose words a session holds: the end user that the application names (session.EndUserID; '' if it names
-- none), and the project that its requests are tagged with. NULL: from before both were kept.
ALTER TABLE sessions ADD COLUMN end_user text, ADD COLUMN project text;

-- When the default scope of a workspace's memory was narrowed to the session; NULL for those made since.
ALTER TABLE workspaces ADD COLUMN memory_narrowed_at timestamptz DEFAULT now();
ALTER TABLE workspaces ALTER COLUMN memory_narrowed_at DROP DEFAULT;

-- search_within is search_documents with bounds for what may come into another session's prompt: the
-- keys, the end user and the project of sessions. search_documents is for versions before this.
-- +goose StatementBegin
CREATE FUNCTION search_within(
  wanted bigint[], weights float8[], hints boolean[], required bigint[],
  of_keys uuid[], of_user text, of_project text, of_session uuid, of_lane uuid, below int, since timestamptz, until timestamptz, most int
) RETURNS TABLE (lane uuid, session uuid, from_message int, to_message int, in_part int, archived timestamptz, rank float8, score float8)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  tenant      CONSTANT uuid := public.app_workspace();
  few         CONSTANT int := 1500;    -- documents of which each is looked at
  enough      CONSTANT int := 16;      -- documents of a sample that make an estimate
  affordable  CONSTANT bigint := 3000; -- postings that are read to find candidates
  candidates  CONSTANT int := 200;
  newest      CONSTANT int := 300;     -- documents that are looked at where every word is common
  asked       CONSTANT int := 16;      -- terms that are looked for in many documents
  chosen      tid[];
  documents   bigint;
  frequencies bigint[] := '{}';
  frequency   bigint;
  samples     bigint;
  rare        int[];                   -- places of wanted terms, the rarest first
  spent       bigint := 0;
  ids         uuid[];
  bounds      int[];
  i           int;
BEGIN
  IF tenant IS NULL THEN
    RAISE EXCEPTION 'search without a workspace' USING ERRCODE = '42501';
  END IF;

  IF of_lane IS NOT NULL THEN
    WITH RECURSIVE line AS (
      SELECT l.id, l.parent_id, l.fork_at, coalesce(nullif(below, 0), 2147483647) AS bound
      FROM public.lanes l WHERE l.workspace_id = tenant AND l.id = of_lane
      UNION ALL
      SELECT p.id, p.parent_id, p.fork_at, least(line.bound, line.fork_at)
      FROM line JOIN public.lanes p ON p.workspace_id = tenant AND p.id = line.parent_id
    ) SELECT array_agg(line.id), array_agg(line.bound) INTO ids, bounds FROM line;
    SELECT array_agg(s.place) INTO chosen FROM (
      SELECT d.ctid AS place FROM unnest(ids, bounds) AS line (id, bound)
      JOIN public.archive_documents d ON d.workspace_id = tenant AND d.lane_id = line.id AND d.after <= line.bound
      LIMIT few + 1) s;
  ELSIF of_session IS NOT NULL THEN
    SELECT array_agg(s.place) INTO chosen FROM (
      SELECT d.ctid AS place FROM public.archive_documents d WHERE d.workspace_id = tenant AND d.session_id = of_session LIMIT few + 1) s;
  END IF;
  IF (of_lane IS NOT NULL OR of_session IS NOT NULL) AND coalesce(cardinality(chosen), 0) <= few THEN
    -- Few documents in the lane or session: each is looked at.
    SELECT array_agg(d.ctid), count(*) INTO chosen, documents FROM public.archive_documents d
    WHERE d.ctid = ANY (chosen) AND d.workspace_id = tenant
      AND (of_keys IS NULL OR d.api_key_id = ANY (of_keys))
          AND (of_user IS NULL AND of_project IS NULL OR EXISTS (SELECT FROM public.sessions s WHERE s.workspace_id = tenant AND s.id = d.session_id
            AND (of_user IS NULL OR s.end_user = of_user) AND (of_project IS NULL OR s.project = of_project))) AND (of_session IS NULL OR d.session_id = of_session)
      AND (since IS NULL OR d.at >= since) AND (until IS NULL OR d.at < until)
      AND (required IS NULL OR d.terms @> required);
    IF documents = 0 THEN
      RETURN;
    END IF;
    frequencies := NULL; -- of exactly these documents
  ELSE
    -- How many documents hold each term: counted in the smaller sample, where that
    -- has too few in the larger, and where that has too few in the whole, so that no
    -- count looks at many documents.
    SELECT count(*) INTO samples FROM public.archive_documents d WHERE d.workspace_id = tenant AND d.sampled >= 1;
    documents := samples * 64;
    IF samples < 2 * enough THEN
      SELECT count(*) INTO documents FROM public.archive_documents d WHERE d.workspace_id = tenant;
    END IF;
    wanted := wanted[1 : asked];
    FOR i IN 1 .. cardinality(wanted) LOOP
      frequency := 0;
      IF samples >= 64 * enough THEN
        SELECT count(*) * 1024 INTO frequency FROM public.archive_documents d
        WHERE d.sampled >= 2 AND d.terms && ARRAY[wanted[i], wanted[i] | 1, wanted[i] | 2, wanted[i] | 3];
      END IF;
      IF samples >= 2 * enough AND frequency < 1024 * enough THEN
        SELECT count(*) * 64 INTO frequency FROM public.archive_documents d
        WHERE d.sampled >= 1 AND d.terms && ARRAY[wanted[i], wanted[i] | 1, wanted[i] | 2, wanted[i] | 3];
      END IF;
      IF frequency = 0 OR frequency < 64 * enough AND samples < 64 * enough THEN
        SELECT count(*) INTO frequency FROM public.archive_documents d
        WHERE d.terms && ARRAY[wanted[i], wanted[i] | 1, wanted[i] | 2, wanted[i] | 3];
      END IF;
      frequencies := frequencies || frequency;
      documents := greatest(documents, frequency);
    END LOOP;
    SELECT array_agg(f.n ORDER BY f.holding, f.n) INTO rare FROM unnest(frequencies) WITH ORDINALITY AS f (holding, n) WHERE f.holding > 0;
    FOR i IN 1 .. coalesce(cardinality(rare), 0) LOOP
      spent := spent + frequencies[rare[i]];
      IF spent > affordable THEN
        rare := rare[1 : greatest(i - 1, 2)];
        EXIT;
      END IF;
    END LOOP;
    IF rare IS NULL THEN
      RETURN;
    END IF;
    IF frequencies[rare[1]] <= affordable THEN
      IF frequencies[rare[cardinality(rare)]] > affordable THEN
        rare := rare[1 : 1];
      END IF;
      SELECT array_agg(best.place) INTO chosen FROM (
        SELECT d.place
        FROM unnest(rare) AS r (n)
        CROSS JOIN generate_series(0, 3) AS l (level)
        CROSS JOIN LATERAL (
          SELECT d.ctid AS place, d.workspace_id, d.session_id, d.api_key_id, d.at, d.lane_id, d.after FROM public.archive_documents d
          WHERE d.terms @> (ARRAY[wanted[r.n] | l.level] || required) OFFSET 0) d
        WHERE d.workspace_id = tenant
          AND (of_keys IS NULL OR d.api_key_id = ANY (of_keys))
          AND (of_user IS NULL AND of_project IS NULL OR EXISTS (SELECT FROM public.sessions s WHERE s.workspace_id = tenant AND s.id = d.session_id
            AND (of_user IS NULL OR s.end_user = of_user) AND (of_project IS NULL OR s.project = of_project))) AND (of_session IS NULL OR d.session_id = of_session)
          AND (since IS NULL OR d.at >= since) AND (until IS NULL OR d.at < until)
          AND (ids IS NULL OR EXISTS (SELECT FROM unnest(ids, bounds) AS line (id, bound) WHERE line.id = d.lane_id AND d.after <= line.bound))
        GROUP BY d.place
        ORDER BY sum(weights[r.n] * ln(1 + (documents - frequencies[r.n] + 0.5) / (frequencies[r.n] + 0.5)) * (l.level + 0.5) / 4) DESC,
          max(d.at) DESC, d.place DESC
        LIMIT candidates) best;
    ELSE
      -- Nothing but common words: the newest documents, and of words that are not
      -- very common the newest with two of them.
      SELECT array_agg(s.place) INTO chosen FROM (
        SELECT d.ctid AS place, d.at FROM (
          SELECT d.ctid, d.at, d.api_key_id, d.session_id FROM unnest(ids, bounds) AS line (id, bound)
          JOIN public.archive_documents d ON d.workspace_id = tenant AND d.lane_id = line.id AND d.after <= line.bound
          WHERE ids IS NOT NULL OFFSET 0) d
        WHERE (of_keys IS NULL OR d.api_key_id = ANY (of_keys))
          AND (of_user IS NULL AND of_project IS NULL OR EXISTS (SELECT FROM public.sessions s WHERE s.workspace_id = tenant AND s.id = d.session_id
            AND (of_user IS NULL OR s.end_user = of_user) AND (of_project IS NULL OR s.project = of_project))) AND (of_session IS NULL OR d.session_id = of_session)
          AND (since IS NULL OR d.at >= since) AND (until IS NULL OR d.at < until)
        UNION ALL
        SELECT d.ctid, d.at FROM (
          SELECT d.ctid, d.at, d.api_key_id, d.session_id FROM public.archive_documents d
          WHERE ids IS NULL AND of_session IS NOT NULL AND d.workspace_id = tenant AND d.session_id = of_session OFFSET 0) d
        WHERE (of_keys IS NULL OR d.api_key_id = ANY (of_keys))
          AND (of_user IS NULL AND of_project IS NULL OR EXISTS (SELECT FROM public.sessions s WHERE s.workspace_id = tenant AND s.id = d.session_id
            AND (of_user IS NULL OR s.end_user = of_user) AND (of_project IS NULL OR s.project = of_project))) AND (since IS NULL OR d.at >= since) AND (until IS NULL OR d.at < until)
        UNION ALL
        SELECT d.ctid, d.at FROM (
          SELECT d.ctid, d.at, d.api_key_id, d.session_id FROM public.archive_documents d
          WHERE ids IS NULL AND of_session IS NULL AND d.workspace_id = tenant
            AND d.at >= coalesce(since, '-infinity') AND d.at < coalesce(until, 'infinity')
          ORDER BY d.at DESC LIMIT 10 * newest) d
        WHERE (of_keys IS NULL OR d.api_key_id = ANY (of_keys))
          AND (of_user IS NULL AND of_project IS NULL OR EXISTS (SELECT FROM public.sessions s WHERE s.workspace_id = tenant AND s.id = d.session_id
            AND (of_user IS NULL OR s.end_user = of_user) AND (of_project IS NULL OR s.project = of_project)))
        ORDER BY 2 DESC, 1 DESC LIMIT newest) s;
      SELECT array_agg(d.ctid) INTO chosen FROM public.archive_documents d
      WHERE d.ctid = ANY (chosen) AND d.workspace_id = tenant AND (required IS NULL OR d.terms @> required);
      IF cardinality(rare) >= 2 AND frequencies[rare[1]] <= 20 * affordable THEN
        SELECT coalesce(chosen, '{}') || array_agg(d.place) INTO chosen FROM (
          SELECT d.place FROM (
            SELECT d.ctid AS place, d.workspace_id, d.session_id, d.api_key_id, d.at, d.lane_id, d.after FROM public.archive_documents d
            WHERE d.terms && ARRAY[wanted[rare[1]], wanted[rare[1]] | 1, wanted[rare[1]] | 2, wanted[rare[1]] | 3]
              AND d.terms && ARRAY[wanted[rare[2]], wanted[rare[2]] | 1, wanted[rare[2]] | 2, wanted[rare[2]] | 3]
              AND (required IS NULL OR d.terms @> required) LIMIT affordable) d
          WHERE d.workspace_id = tenant
            AND (of_keys IS NULL OR d.api_key_id = ANY (of_keys))
          AND (of_user IS NULL AND of_project IS NULL OR EXISTS (SELECT FROM public.sessions s WHERE s.workspace_id = tenant AND s.id = d.session_id
            AND (of_user IS NULL OR s.end_user = of_user) AND (of_project IS NULL OR s.project = of_project))) AND (of_session IS NULL OR d.session_id = of_session)
            AND (since IS NULL OR d.at >= since) AND (until IS NULL OR d.at < until)
            AND (ids IS NULL OR EXISTS (SELECT FROM unnest(ids, bounds) AS line (id, bound) WHERE line.id = d.lane_id AND d.after <= line.bound))
          ORDER BY d.at DESC, d.place DESC LIMIT candidates) d;
      END IF;
    END IF;
  END IF;

  RETURN QUERY
  WITH question AS (
    SELECT q.n, q.term, q.weight, q.hint, frequencies[q.n] AS holding
    FROM unnest(wanted, weights, hints) WITH ORDINALITY AS q (term, weight, hint, n)
  ), found AS MATERIALIZED (
    SELECT d.ctid AS place, q.n, (t.term & 3) AS level
    FROM public.archive_documents d CROSS JOIN LATERAL unnest(d.terms) AS t (term) JOIN question q ON q.term = (t.term & ~3::bigint)
    WHERE d.ctid = ANY (chosen) AND d.workspace_id = tenant
  ), counted AS (
    SELECT q.n, q.weight, q.hint, coalesce(q.holding, (SELECT count(*) FROM found f WHERE f.n = q.n)) AS holding FROM question q
  ), weighed AS MATERIALIZED (
    SELECT c.n, c.weight * ln(1 + (documents - c.holding + 0.5) / (c.holding + 0.5)) AS weight
    FROM counted c WHERE c.holding > 0 OR NOT c.hint
  ), ranked AS (
    SELECT f.place, sum(w.weight * (f.level + 0.5) / 4) AS rank, sum(w.weight) / (SELECT sum(weight) FROM weighed) AS score
    FROM found f JOIN weighed w ON w.n = f.n GROUP BY f.place
  ), aged AS (
    SELECT d.ctid AS place, d.lane_id, d.session_id, d.first, d.after, d.part, d.at,
      row_number() OVER (ORDER BY d.at, d.first, d.part, d.lane_id)::float8 / count(*) OVER () AS newness
    FROM public.archive_documents d WHERE d.ctid = ANY (chosen) AND d.workspace_id = tenant
  )
  SELECT a.lane_id, a.session_id, a.first, a.after, a.part, a.at, r.rank * (1 + 0.02 * a.newness), least(r.score, 1)
  FROM ranked r JOIN aged a ON a.place = r.place
  ORDER BY 7 DESC, a.at DESC, a.first DESC, a.part, a.lane_id
  LIMIT most;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION search_within FROM PUBLIC;
GRANT EXECUTE ON FUNCTION search_within TO palimpsest_app;
-- +goose StatementBegin
DO $$
DECLARE
  searcher name := (SELECT proowner::regrole::text FROM pg_proc WHERE proname = 'search_documents');
  granted  boolean := false;
BEGIN
  IF searcher = current_user THEN
    RETURN;
  END IF;
  IF NOT pg_has_role(current_user, searcher, 'MEMBER') THEN
    EXECUTE format('GRANT %I TO %I', searcher, current_user);
    granted := true;
  END IF;
  EXECUTE format('GRANT SELECT ON sessions TO %I', searcher);
  EXECUTE format('GRANT CREATE ON SCHEMA public TO %I', searcher);
  EXECUTE format('ALTER FUNCTION search_within OWNER TO %I', searcher);
  EXECUTE format('REVOKE CREATE ON SCHEMA public FROM %I', searcher);
  IF granted THEN
    EXECUTE format('REVOKE %I FROM %I', searcher, current_user);
  END IF;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION search_within;
-- +goose StatementBegin
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'palimpsest_search') THEN
    REVOKE ALL ON sessions FROM palimpsest_search;
  END IF;
END $$;
-- +goose StatementEnd
ALTER TABLE sessions DROP COLUMN end_user, DROP COLUMN project;
ALTER TABLE workspaces DROP COLUMN memory_narrowed_at;
