-- +goose Up

-- Of the exchanges of such a key nothing is kept but figures.
ALTER TABLE api_keys ADD COLUMN no_store boolean NOT NULL DEFAULT false;

-- The text of a mail that waits holds links that open accounts: it is sealed. NULL: the
-- body holds it, as a program from before writes it. Such a program works as 'mail'
-- and does not see what it could not read.
ALTER TABLE mails ADD COLUMN sealed bytea;
DROP POLICY worker ON mails;
CREATE POLICY worker ON mails
  USING ((SELECT current_setting('app.worker', true)) = 'outbox' OR (sealed IS NULL AND (SELECT current_setting('app.worker', true)) = 'mail'))
  WITH CHECK ((SELECT current_setting('app.worker', true)) = 'outbox' OR (sealed IS NULL AND (SELECT current_setting('app.worker', true)) = 'mail'));

-- Stripe's customers whose workspace was deleted and whose subscriptions are to end. A
-- row names no workspace, of which nothing may be left, and goes once Stripe has done
-- it.
CREATE TABLE subscription_ends (
  id       uuid PRIMARY KEY,                     -- version 7: ordered by time
  customer text NOT NULL,                        -- Stripe's id
  asked_at timestamptz NOT NULL,
  attempts int NOT NULL DEFAULT 0,
  next_at  timestamptz NOT NULL                  -- not to be tried before
);
CREATE INDEX subscription_ends_next ON subscription_ends (next_at);
CREATE POLICY worker ON subscription_ends
  USING ((SELECT current_setting('app.worker', true)) = 'billing') WITH CHECK ((SELECT current_setting('app.worker', true)) = 'billing');
ALTER TABLE subscription_ends ENABLE ROW LEVEL SECURITY;
ALTER TABLE subscription_ends FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON subscription_ends TO palimpsest_app;

-- note_subscription_end tells operators what became of a deleted workspace's
-- subscription: its own log is deleted with it.
-- +goose StatementBegin
CREATE FUNCTION note_subscription_end(of_customer text, ended boolean, why text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF current_setting('app.worker', true) IS DISTINCT FROM 'billing' THEN
    RAISE EXCEPTION 'only billing ends subscriptions' USING ERRCODE = '42501';
  END IF;
  INSERT INTO public.operator_entries (actor, action, target, name, reason)
    VALUES ('billing', CASE WHEN ended THEN 'subscription.ended' ELSE 'subscription.not_ended' END, of_customer, of_customer, why);
END $$;
-- +goose StatementEnd

-- It belongs to the role that the operator's functions belong to.
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
  EXECUTE format('GRANT CREATE ON SCHEMA public TO %I', door);
  EXECUTE format('ALTER FUNCTION note_subscription_end OWNER TO %I', door);
  EXECUTE format('REVOKE CREATE ON SCHEMA public FROM %I', door);
  IF granted THEN
    EXECUTE format('REVOKE %I FROM %I', door, current_user);
  END IF;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION note_subscription_end;
DROP TABLE subscription_ends;
DROP POLICY worker ON mails;
-- What is sealed cannot be read by a program from before: its links are asked for anew.
DELETE FROM mails WHERE sealed IS NOT NULL;
ALTER TABLE mails DROP COLUMN sealed;
CREATE POLICY worker ON mails
  USING ((SELECT current_setting('app.worker', true)) = 'mail') WITH CHECK ((SELECT current_setting('app.worker', true)) = 'mail');
ALTER TABLE api_keys DROP COLUMN no_store;
