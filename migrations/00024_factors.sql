-- +goose Up

-- The secret that a person's authenticator app makes codes from, sealed for the person.
CREATE TABLE second_factors (
  user_id      uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
  sealed       bytea NOT NULL,
  created_at   timestamptz NOT NULL,
  confirmed_at timestamptz,              -- NULL: no code was typed yet, so none is asked for
  used_at      timestamptz,
  last_step    bigint NOT NULL DEFAULT 0 -- time step of the last accepted code; none up to it is accepted
);

-- What lets a person in without their app, once each. The codes are not kept.
CREATE TABLE recovery_codes (
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  hash    bytea NOT NULL,                -- SHA-256 of person and code
  PRIMARY KEY (user_id, hash)
);

CREATE POLICY own ON second_factors USING (user_id = (SELECT app_user())) WITH CHECK (user_id = (SELECT app_user()));
CREATE POLICY own ON recovery_codes USING (user_id = (SELECT app_user())) WITH CHECK (user_id = (SELECT app_user()));
-- Who has one is seen by the worker that seals what an older master key sealed anew.
CREATE POLICY worker ON second_factors FOR SELECT USING ((SELECT current_setting('app.worker', true)) = 'rotation');

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['second_factors', 'recovery_codes']
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
  END LOOP;
END $$;
-- +goose StatementEnd
GRANT SELECT, INSERT, DELETE, UPDATE (sealed, created_at, confirmed_at, used_at, last_step) ON second_factors TO palimpsest_app;
GRANT SELECT, INSERT, DELETE ON recovery_codes TO palimpsest_app;

-- +goose Down
DROP TABLE second_factors, recovery_codes;
