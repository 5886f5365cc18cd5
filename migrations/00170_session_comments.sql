-- +goose Up

-- The sessions that people have starred, each for themselves.
CREATE TABLE session_stars (
  workspace_id uuid NOT NULL,
  user_id      uuid NOT NULL,
  session_id   uuid NOT NULL,
  starred_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (workspace_id, user_id, session_id),
  FOREIGN KEY (workspace_id, user_id) REFERENCES members ON DELETE CASCADE,
  FOREIGN KEY (workspace_id, session_id) REFERENCES sessions ON DELETE CASCADE
);
CREATE INDEX session_stars_session ON session_stars (workspace_id, session_id);

-- What people of the workspace say about sessions.
CREATE TABLE session_comments (
  workspace_id uuid NOT NULL,
  id           uuid NOT NULL,     -- version 7: ordered by time
  session_id   uuid NOT NULL,
  lane_id      uuid,              -- of the message; NULL: about the whole session
  message      int CHECK (message >= 0), -- place in the client's list
  user_id      uuid,              -- the author; NULL once they have left the workspace
  text         text NOT NULL CHECK (char_length(text) BETWEEN 1 AND 4000),
  created_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (workspace_id, id),
  FOREIGN KEY (workspace_id, session_id) REFERENCES sessions ON DELETE CASCADE,
  FOREIGN KEY (workspace_id, lane_id) REFERENCES lanes ON DELETE SET NULL (lane_id),
  FOREIGN KEY (workspace_id, user_id) REFERENCES members ON DELETE SET NULL (user_id)
);
CREATE INDEX session_comments_session ON session_comments (workspace_id, session_id, id);
CREATE INDEX session_comments_lane ON session_comments (workspace_id, lane_id) WHERE lane_id IS NOT NULL;
CREATE INDEX session_comments_user ON session_comments (workspace_id, user_id) WHERE user_id IS NOT NULL;

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['session_stars', 'session_comments'] LOOP
    EXECUTE format('CREATE POLICY tenant ON %I USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()))', t);
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
  END LOOP;
END $$;
-- +goose StatementEnd

GRANT SELECT, INSERT, DELETE ON session_stars, session_comments TO palimpsest_app;
-- Of sessions and lanes that join others.
GRANT UPDATE (session_id, lane_id) ON session_comments TO palimpsest_app;

-- +goose Down
DROP TABLE session_comments, session_stars;
