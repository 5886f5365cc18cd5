-- +goose Up

-- What keys are held to, and the secret that a rotated key had before. Empty limits
-- hold a key to nothing.
ALTER TABLE api_keys
  ADD COLUMN limits    jsonb NOT NULL DEFAULT '{}',
  ADD COLUMN old_hash  bytea UNIQUE,
  ADD COLUMN old_until timestamptz,
  ADD CHECK ((old_hash IS NULL) = (old_until IS NULL));

-- The proxy finds a key by either of its secrets.
DROP POLICY presented_key ON api_keys;
CREATE POLICY presented_key ON api_keys FOR SELECT
  USING (hash = (SELECT app_api_key()) OR old_hash = (SELECT app_api_key()));

-- What a key has cost since the beginning of a day or a month.
CREATE INDEX exchanges_key ON exchanges (workspace_id, api_key_id, at) INCLUDE (cost_microusd);

-- +goose Down
DROP INDEX exchanges_key;
DROP POLICY presented_key ON api_keys;
CREATE POLICY presented_key ON api_keys FOR SELECT USING (hash = (SELECT app_api_key()));
ALTER TABLE api_keys DROP COLUMN limits, DROP COLUMN old_hash, DROP COLUMN old_until;
