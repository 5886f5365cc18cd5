-- +goose Up

-- What the tabs of the list of sessions show is known of each session, so that no visit
-- looks for it in requests and lanes.
ALTER TABLE sessions
  ADD COLUMN bridged boolean NOT NULL DEFAULT false, -- something was put back after the client compacted itself
  ADD COLUMN failed  boolean NOT NULL DEFAULT false; -- a request of it failed or was truncated

-- The words that sessions are found by, each in lower case. What stands in a title is
-- for who may read the sessions of its API key; other words are for everybody.
CREATE TABLE session_words (
  workspace_id uuid NOT NULL,
  word         text COLLATE "C" NOT NULL,
  session_id   uuid NOT NULL,
  api_key_id   uuid NOT NULL, -- all zeros: the word is for everybody
  PRIMARY KEY (workspace_id, word, session_id, api_key_id),
  FOREIGN KEY (workspace_id, session_id) REFERENCES sessions ON DELETE CASCADE
);
CREATE INDEX session_words_session ON session_words (workspace_id, session_id);
CREATE POLICY tenant ON session_words
  USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()));
ALTER TABLE session_words ENABLE ROW LEVEL SECURITY;
ALTER TABLE session_words FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, DELETE ON session_words TO palimpsest_app;

-- The words of a text: what stands between anything that is neither letter nor digit.
-- +goose StatementBegin
CREATE FUNCTION words_of(said text) RETURNS SETOF text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT DISTINCT left(word, 40) FROM regexp_split_to_table(lower(left(said, 1000)), '[^[:alnum:]]+') word WHERE word <> ''
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION keep_session_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    DELETE FROM session_words WHERE workspace_id = NEW.workspace_id AND session_id = NEW.id;
  END IF;
  INSERT INTO session_words (workspace_id, word, session_id, api_key_id)
    SELECT NEW.workspace_id, word, NEW.id, NEW.api_key_id FROM words_of(NEW.title) word
    UNION SELECT NEW.workspace_id, word, NEW.id, '00000000-0000-0000-0000-000000000000' FROM words_of(NEW.name) word;
  RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION mark_failed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE sessions s SET failed = true
    FROM (SELECT DISTINCT workspace_id, session_id FROM added WHERE status >= 400 OR compression = 'truncated') f
    WHERE s.workspace_id = f.workspace_id AND s.id = f.session_id AND NOT s.failed;
  RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION mark_bridged() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE sessions s SET bridged = true
    FROM added i JOIN lanes l ON l.workspace_id = i.workspace_id AND l.id = i.lane_id
    WHERE i.module = 'compaction-bridge' AND s.workspace_id = l.workspace_id AND s.id = l.session_id AND NOT s.bridged;
  RETURN NULL;
END $$;
-- +goose StatementEnd

-- From here on writers keep all three; what was there before is added below.
CREATE TRIGGER session_words_new AFTER INSERT ON sessions FOR EACH ROW
  WHEN (NEW.title <> '' OR NEW.name <> '') EXECUTE FUNCTION keep_session_words();
CREATE TRIGGER session_words_changed AFTER UPDATE OF title, name ON sessions FOR EACH ROW
  WHEN (OLD.title <> NEW.title OR OLD.name <> NEW.name) EXECUTE FUNCTION keep_session_words();
CREATE TRIGGER session_failed AFTER INSERT ON exchanges REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION mark_failed();
CREATE TRIGGER session_bridged AFTER INSERT ON lane_inserts REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION mark_bridged();

ALTER TABLE sessions NO FORCE ROW LEVEL SECURITY;
ALTER TABLE exchanges NO FORCE ROW LEVEL SECURITY;
ALTER TABLE lanes NO FORCE ROW LEVEL SECURITY;
ALTER TABLE lane_inserts NO FORCE ROW LEVEL SECURITY;
ALTER TABLE session_words NO FORCE ROW LEVEL SECURITY;
UPDATE sessions s SET failed = true FROM (
    SELECT DISTINCT workspace_id, session_id FROM exchanges WHERE status >= 400 AND session_id IS NOT NULL
    UNION SELECT workspace_id, session_id FROM exchanges WHERE compression = 'truncated'
  ) f WHERE s.workspace_id = f.workspace_id AND s.id = f.session_id;
UPDATE sessions s SET bridged = true FROM lane_inserts i JOIN lanes l ON l.workspace_id = i.workspace_id AND l.id = i.lane_id
  WHERE i.module = 'compaction-bridge' AND s.workspace_id = l.workspace_id AND s.id = l.session_id;
INSERT INTO session_words (workspace_id, word, session_id, api_key_id)
  SELECT s.workspace_id, word, s.id, s.api_key_id FROM sessions s, words_of(s.title) word
  UNION SELECT s.workspace_id, word, s.id, '00000000-0000-0000-0000-000000000000' FROM sessions s, words_of(s.name) word;
ALTER TABLE sessions FORCE ROW LEVEL SECURITY;
ALTER TABLE exchanges FORCE ROW LEVEL SECURITY;
ALTER TABLE lanes FORCE ROW LEVEL SECURITY;
ALTER TABLE lane_inserts FORCE ROW LEVEL SECURITY;
ALTER TABLE session_words FORCE ROW LEVEL SECURITY;

CREATE INDEX sessions_bridged ON sessions (workspace_id, last_at DESC, id DESC) WHERE bridged;
CREATE INDEX sessions_problems ON sessions (workspace_id, last_at DESC, id DESC) WHERE net_microusd < 0 OR failed;
DROP INDEX exchanges_session_failed; -- nothing looks for failed requests of sessions any more

-- +goose Down
CREATE INDEX exchanges_session_failed ON exchanges (workspace_id, session_id) WHERE status >= 400 AND session_id IS NOT NULL;
DROP TRIGGER session_bridged ON lane_inserts;
DROP TRIGGER session_failed ON exchanges;
DROP TRIGGER session_words_changed ON sessions;
DROP TRIGGER session_words_new ON sessions;
DROP FUNCTION mark_bridged();
DROP FUNCTION mark_failed();
DROP FUNCTION keep_session_words();
DROP TABLE session_words;
DROP FUNCTION words_of(text);
ALTER TABLE sessions DROP COLUMN failed, DROP COLUMN bridged;
