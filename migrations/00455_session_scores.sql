-- +goose Up

-- What people think of a session: one score each, 1 or -1, with a note.
CREATE TABLE session_scores (
  workspace_id uuid NOT NULL,
  id           uuid NOT NULL,     -- version 7: ordered by time
  session_id   uuid NOT NULL,
  user_id      uuid,              -- NULL once they have left the workspace
  score        smallint NOT NULL CHECK (score IN (1, -1)),
  note         text NOT NULL CHECK (char_length(note) <= 1000),
  scored_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (workspace_id, id),
  UNIQUE (workspace_id, session_id, user_id),
  FOREIGN KEY (workspace_id, session_id) REFERENCES sessions ON DELETE CASCADE,
  FOREIGN KEY (workspace_id, user_id) REFERENCES members ON DELETE SET NULL (user_id)
);
CREATE INDEX session_scores_score ON session_scores (workspace_id, score, session_id);
CREATE INDEX session_scores_user ON session_scores (workspace_id, user_id) WHERE user_id IS NOT NULL;

-- The labels of sessions, each once.
CREATE TABLE session_labels (
  workspace_id uuid NOT NULL,
  session_id   uuid NOT NULL,
  label        text NOT NULL CHECK (char_length(label) BETWEEN 1 AND 64),
  user_id      uuid,              -- of who put it there; NULL once they have left the workspace
  labeled_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (workspace_id, session_id, label),
  FOREIGN KEY (workspace_id, session_id) REFERENCES sessions ON DELETE CASCADE,
  FOREIGN KEY (workspace_id, user_id) REFERENCES members ON DELETE SET NULL (user_id)
);
CREATE INDEX session_labels_label ON session_labels (workspace_id, label, session_id);
CREATE INDEX session_labels_user ON session_labels (workspace_id, user_id) WHERE user_id IS NOT NULL;

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['session_scores', 'session_labels'] LOOP
    EXECUTE format('CREATE POLICY tenant ON %I USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()))', t);
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
  END LOOP;
END $$;
-- +goose StatementEnd

GRANT SELECT, INSERT, DELETE ON session_scores, session_labels TO palimpsest_app;
GRANT UPDATE (score, note, scored_at) ON session_scores TO palimpsest_app;
-- Of sessions that join others.
GRANT UPDATE (session_id) ON session_scores TO palimpsest_app;

-- +goose Down
DROP TABLE session_labels, session_scores;
