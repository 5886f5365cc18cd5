-- +goose Up

-- The key under which what is kept of a workspace is sealed, itself sealed by the
-- vault. Without this row nothing of the workspace opens any more, not even in a
-- backup of the bucket.
CREATE TABLE data_keys (
  workspace_id uuid PRIMARY KEY REFERENCES workspaces ON DELETE CASCADE,
  wrapped      bytea NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now(),
  wrapped_at   timestamptz NOT NULL DEFAULT now()
);
CREATE POLICY tenant ON data_keys
  USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
ALTER TABLE data_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE data_keys FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON data_keys TO palimpsest_app;

-- archive_objects.encoding: 2 added to 0 or 1 says that the bytes are sealed.
-- What lies in a bucket without being sealed has its hash for a name there; the
-- sealed has a name that only the data key can make.
ALTER TABLE archive_objects ADD COLUMN bare boolean NOT NULL DEFAULT false;
UPDATE archive_objects SET bare = true WHERE place <> 0;
CREATE INDEX archive_objects_unsealed ON archive_objects (workspace_id) WHERE encoding < 2 OR bare;

-- What stands for text that was stored readable before; NULL: it is in text still.
ALTER TABLE summaries ADD COLUMN sealed bytea;

-- The chain of a lane: how many of its first messages it links, the link after
-- them, and a proof of both that only the data key can make.
ALTER TABLE lanes
  ADD COLUMN chain_messages int NOT NULL DEFAULT 0 CHECK (chain_messages >= 0),
  ADD COLUMN chain_link     bytea,                  -- NULL: no message is linked yet
  ADD COLUMN chain_proof    bytea;                  -- NULL: without a data key

-- After how many days without a request a session is deleted.
ALTER TABLE workspaces ADD COLUMN retention_days int CHECK (retention_days > 0); -- NULL: never

-- +goose Down
-- Nothing that is sealed can be read by a program from before.
ALTER TABLE workspaces DROP COLUMN retention_days;
ALTER TABLE lanes DROP COLUMN chain_proof, DROP COLUMN chain_link, DROP COLUMN chain_messages;
ALTER TABLE summaries DROP COLUMN sealed;
DROP INDEX archive_objects_unsealed;
ALTER TABLE archive_objects DROP COLUMN bare;
DROP TABLE data_keys;
