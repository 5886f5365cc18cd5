-- +goose Up

-- The page of a session numbers the requests of one lane: from the index alone, however
-- many there are. The figures of those that it shows are read row by row.
DROP INDEX exchanges_session;
CREATE INDEX exchanges_session ON exchanges (workspace_id, session_id, at DESC, id DESC) INCLUDE (lane_id, tokens_before);

-- What happened in a lane, newest first: few of its requests.
CREATE INDEX exchanges_events ON exchanges (workspace_id, lane_id, at DESC, id DESC)
  WHERE tokens_before > 0 AND (compression NOT IN ('', 'none', 'frozen', 'bypassed') OR class = 'after-compaction');

-- +goose Down
DROP INDEX exchanges_events;
DROP INDEX exchanges_session;
CREATE INDEX exchanges_session ON exchanges (workspace_id, session_id, at DESC, id DESC);
