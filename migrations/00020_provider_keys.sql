-- +goose Up

-- How a provider key is used, and what came of it.
ALTER TABLE provider_keys
  ADD COLUMN preset      text NOT NULL DEFAULT '',
  ADD COLUMN both_dialects boolean NOT NULL DEFAULT false, -- takes the other dialect too
  ADD COLUMN auth        text NOT NULL DEFAULT '',       -- header of the key; empty: as the dialect has it
  ADD COLUMN headers     jsonb NOT NULL DEFAULT '[]',    -- sent along: [{"name", "value"}]
  ADD COLUMN models      jsonb NOT NULL DEFAULT '[]',    -- patterns
  ADD COLUMN place       int NOT NULL DEFAULT 0,         -- smaller ones are asked first
  ADD COLUMN is_default  boolean NOT NULL DEFAULT false,
  ADD COLUMN disabled    boolean NOT NULL DEFAULT false,
  ADD COLUMN sealed_at   timestamptz NOT NULL DEFAULT now(), -- when the secret was given
  ADD COLUMN checked_at  timestamptz,                    -- NULL: never tested
  ADD COLUMN check_ok    boolean NOT NULL DEFAULT false,
  ADD COLUMN check_status int NOT NULL DEFAULT 0,
  ADD COLUMN check_problem text NOT NULL DEFAULT '';
UPDATE provider_keys SET sealed_at = created_at;

ALTER TABLE exchanges ADD COLUMN provider_key_id uuid; -- NULL: none that is stored
CREATE INDEX exchanges_provider_key ON exchanges (workspace_id, provider_key_id, at) WHERE provider_key_id IS NOT NULL;

-- +goose Down
DROP INDEX exchanges_provider_key;
ALTER TABLE exchanges DROP COLUMN provider_key_id;
ALTER TABLE provider_keys
  DROP COLUMN check_problem, DROP COLUMN check_status, DROP COLUMN check_ok, DROP COLUMN checked_at, DROP COLUMN sealed_at,
  DROP COLUMN disabled, DROP COLUMN is_default, DROP COLUMN place, DROP COLUMN models, DROP COLUMN headers, DROP COLUMN auth,
  DROP COLUMN both_dialects, DROP COLUMN preset;
