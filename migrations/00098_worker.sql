-- +goose Up

-- Background jobs and operators' pages get a role and a login of their own. Policies and
-- functions that reach across workspaces are granted to it and no longer check app.worker,
-- which any statement on a request's connection could set.
-- +goose StatementBegin
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'palimpsest_worker') THEN
    CREATE ROLE palimpsest_worker NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
  END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; -- created for another database of the cluster at the same time
END $$;
-- +goose StatementEnd
GRANT USAGE ON SCHEMA public, jobs TO palimpsest_worker;

-- Transactions of requests lock their workspace before the tables below. Taking it first here,
-- too, avoids deadlocks with replicas that are running.
LOCK TABLE workspaces IN ACCESS EXCLUSIVE MODE;

-- Jobs contain workspace IDs. Requests see and add jobs of their own workspace only. Replicas
-- of the version before run jobs on the app login: from now on they find none and lose the
-- leadership. They read river_queue every two seconds, which holds names of job kinds only.
DELETE FROM jobs.river_leader;
CREATE POLICY names ON jobs.river_queue FOR SELECT TO palimpsest_app USING (true);
CREATE POLICY tenant ON jobs.river_job TO palimpsest_app
  USING (args->>'workspace' = (SELECT app_workspace())::text) WITH CHECK (args->>'workspace' = (SELECT app_workspace())::text);
-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['river_job', 'river_leader', 'river_queue'] LOOP
    EXECUTE format('CREATE POLICY worker ON jobs.%I TO palimpsest_worker USING (true) WITH CHECK (true)', t);
    EXECUTE format('ALTER TABLE jobs.%I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE jobs.%I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON jobs.%I TO palimpsest_worker', t);
  END LOOP;
END $$;
-- +goose StatementEnd
GRANT USAGE ON SEQUENCE jobs.river_job_id_seq TO palimpsest_worker;

-- Requests queue work for the worker, but cannot read it. A subscription to end must belong to
-- a customer of the transaction's workspace.
DROP POLICY worker ON mails;
CREATE POLICY worker ON mails TO palimpsest_worker USING (true) WITH CHECK (true);
CREATE POLICY queue ON mails FOR INSERT TO palimpsest_app WITH CHECK (true);
DROP POLICY worker ON account_requests;
CREATE POLICY worker ON account_requests TO palimpsest_worker USING (true) WITH CHECK (true);
CREATE POLICY queue ON account_requests FOR INSERT TO palimpsest_app WITH CHECK (true);
DROP POLICY worker ON subscription_ends;
CREATE POLICY worker ON subscription_ends TO palimpsest_worker USING (true) WITH CHECK (true);
CREATE POLICY queue ON subscription_ends FOR INSERT TO palimpsest_app WITH CHECK (EXISTS (
  SELECT FROM billing_accounts b WHERE b.workspace_id = (SELECT app_workspace()) AND b.customer = subscription_ends.customer));
GRANT SELECT, INSERT, UPDATE, DELETE ON mails, subscription_ends TO palimpsest_worker;
GRANT SELECT, INSERT, DELETE ON account_requests TO palimpsest_worker;

-- Startup checks the master key as the owner, before it creates logins. The policies look up
-- the table's owner, because ownership can change.
DROP POLICY worker ON master_proof;
CREATE POLICY worker ON master_proof TO palimpsest_worker USING (true) WITH CHECK (true);
CREATE POLICY owner ON master_proof
  USING ((SELECT pg_has_role(c.relowner, 'USAGE') FROM pg_class c WHERE c.oid = 'master_proof'::regclass))
  WITH CHECK ((SELECT pg_has_role(c.relowner, 'USAGE') FROM pg_class c WHERE c.oid = 'master_proof'::regclass));
GRANT SELECT, UPDATE (sealed, sealed_at) ON master_proof TO palimpsest_worker;
DROP POLICY worker ON data_keys;
CREATE POLICY owner ON data_keys FOR SELECT
  USING ((SELECT pg_has_role(c.relowner, 'USAGE') FROM pg_class c WHERE c.oid = 'data_keys'::regclass));

-- Which workspaces have work to do.
DROP POLICY worker ON second_factors;
CREATE POLICY worker ON second_factors FOR SELECT TO palimpsest_worker USING (true);
DROP POLICY archive_indexer ON archive_unindexed;
CREATE POLICY worker ON archive_unindexed FOR SELECT TO palimpsest_worker USING (true);
DROP POLICY billing_worker ON usage_meter;
CREATE POLICY worker ON usage_meter FOR SELECT TO palimpsest_worker USING (true);
DROP POLICY billing_worker ON billing_accounts;
CREATE POLICY worker ON billing_accounts FOR SELECT TO palimpsest_worker USING (true);
DROP POLICY archive_mover ON workspaces;
DROP POLICY pattern_miner ON workspaces;
CREATE POLICY worker ON workspaces FOR SELECT TO palimpsest_worker USING (true);
GRANT SELECT ON second_factors, archive_unindexed, usage_meter, billing_accounts, workspaces TO palimpsest_worker;

-- The worker calls the operator functions and note_subscription_end. The owner alone calls
-- appoint_operator, as before. Neither checks a setting anymore.
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
  FOR f IN SELECT p.oid::regprocedure AS name FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace
    AND p.proname IN ('operator_workspaces', 'operator_suspend', 'operator_log', 'note_subscription_end')
  LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO palimpsest_worker', f.name);
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM palimpsest_app', f.name);
  END LOOP;
  CREATE OR REPLACE FUNCTION appoint_operator(person uuid) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
  BEGIN
    INSERT INTO public.operators (user_id) VALUES (person) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
      RETURN false;
    END IF;
    INSERT INTO public.operator_entries (actor, action, target, name)
      SELECT 'command line', 'operator.appointed', u.id::text, u.email FROM public.users u WHERE u.id = person;
    RETURN true;
  END $f$;
  CREATE OR REPLACE FUNCTION note_subscription_end(of_customer text, ended boolean, why text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
  BEGIN
    INSERT INTO public.operator_entries (actor, action, target, name, reason)
      VALUES ('billing', CASE WHEN ended THEN 'subscription.ended' ELSE 'subscription.not_ended' END, of_customer, of_customer, why);
  END $f$;
  IF granted THEN
    EXECUTE format('REVOKE %I FROM %I', door, current_user);
  END IF;
END $$;
-- +goose StatementEnd

-- +goose Down
-- The role stays, because other databases of the cluster may use it.
LOCK TABLE workspaces IN ACCESS EXCLUSIVE MODE;
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
  FOR f IN SELECT p.oid::regprocedure AS name FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace
    AND p.proname IN ('operator_workspaces', 'operator_suspend', 'operator_log', 'note_subscription_end')
  LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO palimpsest_app', f.name);
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM palimpsest_worker', f.name);
  END LOOP;
  CREATE OR REPLACE FUNCTION appoint_operator(person uuid) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
  BEGIN
    IF current_setting('app.worker', true) IS DISTINCT FROM 'operator' THEN
      RAISE EXCEPTION 'only the command line appoints operators' USING ERRCODE = '42501';
    END IF;
    INSERT INTO public.operators (user_id) VALUES (person) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
      RETURN false;
    END IF;
    INSERT INTO public.operator_entries (actor, action, target, name)
      SELECT 'command line', 'operator.appointed', u.id::text, u.email FROM public.users u WHERE u.id = person;
    RETURN true;
  END $f$;
  CREATE OR REPLACE FUNCTION note_subscription_end(of_customer text, ended boolean, why text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
  BEGIN
    IF current_setting('app.worker', true) IS DISTINCT FROM 'billing' THEN
      RAISE EXCEPTION 'only billing ends subscriptions' USING ERRCODE = '42501';
    END IF;
    INSERT INTO public.operator_entries (actor, action, target, name, reason)
      VALUES ('billing', CASE WHEN ended THEN 'subscription.ended' ELSE 'subscription.not_ended' END, of_customer, of_customer, why);
  END $f$;
  IF granted THEN
    EXECUTE format('REVOKE %I FROM %I', door, current_user);
  END IF;
END $$;
-- +goose StatementEnd

DROP POLICY worker ON workspaces;
CREATE POLICY archive_mover ON workspaces FOR SELECT USING ((SELECT current_setting('app.worker', true)) = 'archive');
CREATE POLICY pattern_miner ON workspaces FOR SELECT USING ((SELECT current_setting('app.worker', true)) = 'patterns');
DROP POLICY worker ON billing_accounts;
CREATE POLICY billing_worker ON billing_accounts FOR SELECT USING ((SELECT current_setting('app.worker', true)) = 'billing');
DROP POLICY worker ON usage_meter;
CREATE POLICY billing_worker ON usage_meter FOR SELECT USING ((SELECT current_setting('app.worker', true)) = 'billing');
DROP POLICY worker ON archive_unindexed;
CREATE POLICY archive_indexer ON archive_unindexed FOR SELECT USING ((SELECT current_setting('app.worker', true)) = 'archive');
DROP POLICY worker ON second_factors;
CREATE POLICY worker ON second_factors FOR SELECT USING ((SELECT current_setting('app.worker', true)) = 'rotation');

DROP POLICY owner ON data_keys;
CREATE POLICY worker ON data_keys FOR SELECT USING ((SELECT current_setting('app.worker', true)) = 'rotation');
DROP POLICY owner ON master_proof;
DROP POLICY worker ON master_proof;
CREATE POLICY worker ON master_proof
  USING ((SELECT current_setting('app.worker', true)) = 'rotation') WITH CHECK ((SELECT current_setting('app.worker', true)) = 'rotation');

DROP POLICY queue ON subscription_ends;
DROP POLICY worker ON subscription_ends;
CREATE POLICY worker ON subscription_ends
  USING ((SELECT current_setting('app.worker', true)) = 'billing') WITH CHECK ((SELECT current_setting('app.worker', true)) = 'billing');
DROP POLICY queue ON account_requests;
DROP POLICY worker ON account_requests;
CREATE POLICY worker ON account_requests
  USING ((SELECT current_setting('app.worker', true)) = 'mail') WITH CHECK ((SELECT current_setting('app.worker', true)) = 'mail');
DROP POLICY queue ON mails;
DROP POLICY worker ON mails;
CREATE POLICY worker ON mails
  USING ((SELECT current_setting('app.worker', true)) = 'outbox' OR (sealed IS NULL AND (SELECT current_setting('app.worker', true)) = 'mail'))
  WITH CHECK ((SELECT current_setting('app.worker', true)) = 'outbox' OR (sealed IS NULL AND (SELECT current_setting('app.worker', true)) = 'mail'));

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['river_job', 'river_leader', 'river_queue'] LOOP
    EXECUTE format('ALTER TABLE jobs.%I NO FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE jobs.%I DISABLE ROW LEVEL SECURITY', t);
    EXECUTE format('DROP POLICY worker ON jobs.%I', t);
  END LOOP;
END $$;
-- +goose StatementEnd
DROP POLICY tenant ON jobs.river_job;
DROP POLICY names ON jobs.river_queue;
REVOKE ALL ON ALL TABLES IN SCHEMA public, jobs FROM palimpsest_worker;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA jobs FROM palimpsest_worker;
REVOKE USAGE ON SCHEMA public, jobs FROM palimpsest_worker;
