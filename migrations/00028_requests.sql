-- +goose Up

-- What people look for an exchange by, and what they want to know of one.
ALTER TABLE exchanges
  ADD COLUMN tags       jsonb, -- names and values that the client gave (X-Palimpsest-Tag-<name>); NULL: none
  ADD COLUMN signed     jsonb, -- headers of ours that the answer had and that no other column tells; NULL: none
  ADD COLUMN error_text bytea; -- what the provider said where it refused, sealed; NULL: nothing is kept

-- The exchanges with each tag, by time: a tag that is rare and one that every exchange
-- has are both read in order.
CREATE TABLE exchange_tags (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  tag          text NOT NULL,        -- name=value
  at           timestamptz NOT NULL, -- of the exchange
  exchange_id  uuid NOT NULL,
  PRIMARY KEY (workspace_id, tag, at, exchange_id)
);
CREATE POLICY tenant ON exchange_tags
  USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
ALTER TABLE exchange_tags ENABLE ROW LEVEL SECURITY;
ALTER TABLE exchange_tags FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, DELETE ON exchange_tags TO palimpsest_app;

-- Each way to narrow the list is read along an index. A client may name a model by
-- more than an index takes: from now on no more than this is kept of a name.
UPDATE exchanges SET model = left(model, 200), client = left(client, 200) WHERE length(model) > 200 OR length(client) > 200;
CREATE INDEX exchanges_client ON exchanges (workspace_id, client, at DESC, id DESC);
CREATE INDEX exchanges_model ON exchanges (workspace_id, model, at DESC, id DESC);
CREATE INDEX exchanges_failed ON exchanges (workspace_id, at DESC, id DESC) WHERE status >= 400 OR error_from <> '';

-- What has expired of it.
CREATE INDEX exchanges_error_text ON exchanges (workspace_id, at) WHERE error_text IS NOT NULL;

-- +goose Down
DROP INDEX exchanges_error_text, exchanges_failed, exchanges_model, exchanges_client;
DROP TABLE exchange_tags;
ALTER TABLE exchanges DROP COLUMN error_text, DROP COLUMN signed, DROP COLUMN tags;
