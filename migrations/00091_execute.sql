-- +goose Up

-- A setting such as app.worker bounds what honest code does, and is no boundary: whoever
-- can run a statement can set it. What makes operators is for the owner of the database
-- alone, which the command line logs in as; the other functions that do more than their
-- caller may are for the application's role, and for no other login of the cluster.
-- +goose StatementBegin
DO $$
DECLARE
  door    CONSTANT name := (SELECT r.rolname FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner
    WHERE p.proname = 'claim_operator' AND p.pronamespace = 'public'::regnamespace);
  granted boolean := false;
  f       record;
BEGIN
  IF NOT pg_has_role(current_user, door, 'MEMBER') THEN
    EXECUTE format('GRANT %I TO %I', door, current_user);
    granted := true;
  END IF;
  FOR f IN SELECT p.oid::regprocedure AS name, p.proname FROM pg_proc p
    WHERE p.prosecdef AND p.pronamespace = 'public'::regnamespace AND has_function_privilege('public', p.oid, 'EXECUTE')
  LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', f.name, CASE f.proname WHEN 'appoint_operator' THEN current_user ELSE 'palimpsest_app' END);
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', f.name);
  END LOOP;
  IF granted THEN
    EXECUTE format('REVOKE %I FROM %I', door, current_user);
  END IF;
END $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
DO $$
DECLARE
  door    CONSTANT name := (SELECT r.rolname FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner
    WHERE p.proname = 'claim_operator' AND p.pronamespace = 'public'::regnamespace);
  granted boolean := false;
  f       record;
BEGIN
  IF NOT pg_has_role(current_user, door, 'MEMBER') THEN
    EXECUTE format('GRANT %I TO %I', door, current_user);
    granted := true;
  END IF;
  FOR f IN SELECT p.oid::regprocedure AS name, p.proname FROM pg_proc p
    WHERE p.prosecdef AND p.pronamespace = 'public'::regnamespace AND p.proname <> 'search_documents'
  LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC', f.name);
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM palimpsest_app', f.name);
  END LOOP;
  IF granted THEN
    EXECUTE format('REVOKE %I FROM %I', door, current_user);
  END IF;
END $$;
-- +goose StatementEnd
