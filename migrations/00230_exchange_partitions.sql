-- +goose Up

-- Exchanges are partitioned by their ids, which are ordered by time. The table from before becomes the
-- first partition as it is: bounds that take every id need no look at its rows, so that recorders wait
-- for a moment only. Where it ends, and what comes after it, is the work of a job: see partitions.go.
-- Whoever is granted something is granted it of all partitions together, behind the policies, and nothing of one.
-- +goose StatementBegin
DO $migration$
DECLARE
  first CONSTANT oid := 'exchanges'::regclass;
  one record;
BEGIN
  -- The version before records meanwhile, and may hold what this waits for while it waits for what this holds.
  FOR try IN 1..200 LOOP
    BEGIN
      SET LOCAL lock_timeout = '250ms';
      LOCK TABLE workspaces, exchanges IN ACCESS EXCLUSIVE MODE;
      EXIT;
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
      IF try = 200 THEN RAISE; END IF;
      PERFORM pg_sleep(0.1);
    END;
  END LOOP;
  DROP TRIGGER rollups ON exchanges;
  DROP TRIGGER session_failed ON exchanges;
  ALTER TABLE exchanges RENAME TO exchanges_first;
  ALTER INDEX exchanges_pkey RENAME TO exchanges_first_pkey;
  CREATE TABLE exchanges (
    LIKE exchanges_first INCLUDING DEFAULTS INCLUDING STORAGE,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id) REFERENCES workspaces ON DELETE CASCADE
  ) PARTITION BY RANGE (id);

  -- An index of all partitions takes in one of the same kind that a partition has.
  FOR one IN SELECT c.relname AS name, pg_get_indexdef(c.oid) AS definition
      FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = first AND i.indisvalid AND NOT i.indisprimary AND c.relname LIKE 'exchanges\_%' LOOP
    EXECUTE format('ALTER INDEX %I RENAME TO %I', one.name, replace(one.name, 'exchanges_', 'exchanges_first_'));
    EXECUTE replace(one.definition, ' ON public.exchanges_first ', ' ON public.exchanges ');
  END LOOP;

  FOR one IN SELECT *, (SELECT string_agg(quote_ident(r), ', ') FROM unnest(roles) r) AS readers FROM pg_policies WHERE schemaname = 'public' AND tablename = 'exchanges_first' LOOP
    EXECUTE format('DROP POLICY %I ON exchanges_first', one.policyname);
    EXECUTE format('CREATE POLICY %I ON exchanges FOR %s TO %s USING (%s)', one.policyname, one.cmd, one.readers, one.qual)
      || coalesce(' WITH CHECK (' || one.with_check || ')', '');
  END LOOP;
  ALTER TABLE exchanges_first NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY;
  ALTER TABLE exchanges ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

  FOR one IN SELECT a.privilege_type || coalesce(' (' || string_agg(quote_ident(of.attname), ', ') || ')', '') AS what, a.grantee::regrole AS role
      FROM (SELECT relacl AS acl, NULL AS attname, relowner AS owner FROM pg_class WHERE oid = first
        UNION ALL SELECT attacl, attname, 0 FROM pg_attribute WHERE attrelid = first AND attacl IS NOT NULL) of, aclexplode(of.acl) a
      WHERE a.grantee <> of.owner GROUP BY a.grantee, a.privilege_type, of.attname IS NULL LOOP
    EXECUTE format('GRANT %s ON exchanges TO %s', one.what, one.role);
    EXECUTE format('REVOKE ALL ON exchanges_first FROM %s', one.role);
  END LOOP;

  ALTER TABLE exchanges ATTACH PARTITION exchanges_first FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
  CREATE TRIGGER rollups AFTER INSERT ON exchanges REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION add_rollups();
  CREATE TRIGGER session_failed AFTER INSERT ON exchanges REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION mark_failed();
END $migration$;
-- +goose StatementEnd

-- The lowest id that an exchange of a time, or of one after it, has: whoever asks for exchanges since then names it, too,
-- and is kept from partitions that have ended before. A day is left for clocks that disagree.
-- +goose StatementBegin
CREATE FUNCTION first_exchange_id(since timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT rpad(lpad(to_hex(greatest(0, ((extract(epoch FROM since) - 86400) * 1000)::bigint)), 12, '0'), 32, '0')::uuid $$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION first_exchange_id(timestamptz);
-- The oldest partition takes the rows of the others and is the table again.
-- +goose StatementBegin
DO $migration$
DECLARE
  parted CONSTANT oid := 'exchanges'::regclass;
  oldest regclass := (SELECT c.oid FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid
    WHERE h.inhparent = 'exchanges'::regclass AND pg_get_expr(c.relpartbound, c.oid) LIKE 'FOR VALUES FROM (MINVALUE)%');
  names  text[];
  one record;
BEGIN
  LOCK TABLE workspaces, exchanges IN ACCESS EXCLUSIVE MODE;
  SELECT array_agg(format('ALTER INDEX %s RENAME TO %I', x.indexrelid::regclass, p.relname)) INTO names
    FROM pg_index x JOIN pg_inherits h ON h.inhrelid = x.indexrelid JOIN pg_class p ON p.oid = h.inhparent WHERE x.indrelid = oldest;
  EXECUTE format('ALTER TABLE exchanges DETACH PARTITION %s', oldest);
  FOR one IN SELECT inhrelid::regclass AS name FROM pg_inherits WHERE inhparent = parted LOOP
    EXECUTE format('INSERT INTO %s TABLE %s', oldest, one.name);
    EXECUTE format('DROP TABLE %s', one.name);
  END LOOP;
  FOR one IN SELECT *, (SELECT string_agg(quote_ident(r), ', ') FROM unnest(roles) r) AS readers FROM pg_policies WHERE schemaname = 'public' AND tablename = 'exchanges' LOOP
    EXECUTE format('CREATE POLICY %I ON %s FOR %s TO %s USING (%s)', one.policyname, oldest, one.cmd, one.readers, one.qual)
      || coalesce(' WITH CHECK (' || one.with_check || ')', '');
  END LOOP;
  EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', oldest);
  FOR one IN SELECT a.privilege_type || coalesce(' (' || string_agg(quote_ident(of.attname), ', ') || ')', '') AS what, a.grantee::regrole AS role
      FROM (SELECT relacl AS acl, NULL AS attname, relowner AS owner FROM pg_class WHERE oid = parted
        UNION ALL SELECT attacl, attname, 0 FROM pg_attribute WHERE attrelid = parted AND attacl IS NOT NULL) of, aclexplode(of.acl) a
      WHERE a.grantee <> of.owner GROUP BY a.grantee, a.privilege_type, of.attname IS NULL LOOP
    EXECUTE format('GRANT %s ON %s TO %s', one.what, oldest, one.role);
  END LOOP;
  DROP TABLE exchanges;
  EXECUTE format('ALTER TABLE %s RENAME TO exchanges', oldest);
  FOR one IN SELECT unnest(names) AS statement LOOP
    EXECUTE one.statement;
  END LOOP;
  CREATE TRIGGER rollups AFTER INSERT ON exchanges REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION add_rollups();
  CREATE TRIGGER session_failed AFTER INSERT ON exchanges REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION mark_failed();
END $migration$;
-- +goose StatementEnd
