-- +goose Up

-- Embeddings of documents, for workspaces that have set a model for them. What a
-- document says can be guessed from its vector: it is sealed under the workspace's key.
CREATE TABLE archive_vectors (
  workspace_id uuid NOT NULL,
  lane_id      uuid NOT NULL,
  first        int NOT NULL,
  part         int NOT NULL,
  after        int NOT NULL,     -- as the document had it: it may have grown since
  model        text NOT NULL,
  vector       bytea NOT NULL,   -- sealed; of no length where there is nothing to embed
  PRIMARY KEY (workspace_id, lane_id, first, part) INCLUDE (after, model),
  FOREIGN KEY (workspace_id, lane_id, first, part) REFERENCES archive_documents ON DELETE CASCADE
);
ALTER TABLE archive_vectors ALTER COLUMN vector SET STORAGE EXTERNAL; -- what is sealed does not compress
CREATE POLICY tenant ON archive_vectors
  USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
ALTER TABLE archive_vectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE archive_vectors FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON archive_vectors TO palimpsest_app;

-- +goose Down
DROP TABLE archive_vectors;
