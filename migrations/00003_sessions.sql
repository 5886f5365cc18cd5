-- +goose Up

-- Sessions, their lanes, and what the model sees of them.

-- What one client run sends over its life.
CREATE TABLE sessions (
  workspace_id  uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  id            uuid NOT NULL,
  api_key_id    uuid NOT NULL,
  format        text NOT NULL,
  name          text NOT NULL DEFAULT '',       -- the client's own id; empty: recognized by content
  source        text NOT NULL,                  -- where the id came from
  title         text NOT NULL DEFAULT '',       -- start of the first typed message
  client        text NOT NULL DEFAULT '',
  model         text NOT NULL DEFAULT '',
  started_at    timestamptz NOT NULL,
  last_at       timestamptz NOT NULL,
  exchanges     bigint NOT NULL DEFAULT 0,
  epochs        bigint NOT NULL DEFAULT 0,
  tokens_before bigint NOT NULL DEFAULT 0,
  tokens_after  bigint NOT NULL DEFAULT 0,
  net_microusd  bigint NOT NULL DEFAULT 0,
  -- What the tabs of the list of sessions show is known of each session, so that no visit
  -- looks for it in requests and lanes.
  bridged       boolean NOT NULL DEFAULT false, -- something was put back after the client compacted itself
  failed        boolean NOT NULL DEFAULT false, -- a request of it failed or was truncated
  -- Sessions are kept apart by the base URL that their prompts go to: '' for the
  -- provider's own.
  upstream      text NOT NULL DEFAULT '',
  reach         bigint NOT NULL DEFAULT 0,      -- requests that only went through because they were shortened
  -- Single calls: the client names no session, and no request carried an answer, so that
  -- nothing tells the same question asked again from a conversation.
  continued     boolean NOT NULL DEFAULT false, -- a request carried history
  single        boolean NOT NULL GENERATED ALWAYS AS (name = '' AND NOT continued) STORED,
  PRIMARY KEY (workspace_id, id)
);
CREATE INDEX sessions_last ON sessions (workspace_id, last_at DESC, id DESC);
-- The list of sessions of one part, one client, one model or one key, newest first.
CREATE INDEX sessions_compressed ON sessions (workspace_id, last_at DESC, id DESC) WHERE epochs > 0;
CREATE INDEX sessions_client ON sessions (workspace_id, client, last_at DESC, id DESC);
CREATE INDEX sessions_model ON sessions (workspace_id, model, last_at DESC, id DESC);
CREATE INDEX sessions_key ON sessions (workspace_id, api_key_id, last_at DESC, id DESC);
CREATE INDEX sessions_bridged ON sessions (workspace_id, last_at DESC, id DESC) WHERE bridged;
CREATE INDEX sessions_problems ON sessions (workspace_id, last_at DESC, id DESC) WHERE net_microusd < 0 OR failed;
CREATE INDEX sessions_conversations ON sessions (workspace_id, last_at DESC, id DESC) WHERE NOT single;
CREATE INDEX sessions_single        ON sessions (workspace_id, last_at DESC, id DESC) WHERE single;
-- The list of conversations by what was saved in them, and by what was received. Other lists are in the order of time.
CREATE INDEX sessions_net      ON sessions (workspace_id, net_microusd DESC, id DESC) WHERE NOT single;
CREATE INDEX sessions_received ON sessions (workspace_id, tokens_before DESC, id DESC) WHERE NOT single;

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

-- One line of history inside a session. All compression state belongs to a lane.
CREATE TABLE lanes (
  workspace_id       uuid NOT NULL,
  id                 uuid NOT NULL,
  session_id         uuid NOT NULL,
  parent_id          uuid,                           -- the lane it forked from
  fork_at            int NOT NULL DEFAULT 0,         -- messages shared with the parent
  fork_epoch         int NOT NULL DEFAULT 0,         -- number of the newest projection taken over from the parent
  created_at         timestamptz NOT NULL,
  last_at            timestamptz NOT NULL,
  position           int NOT NULL DEFAULT 0,         -- messages of the request that went furthest
  -- What a lane is: the conversation itself, a subagent's, or a side call's, such
  -- as one that asks for a title or a summary.
  kind               text NOT NULL DEFAULT 'main' CHECK (kind IN ('main', 'subagent', 'side')),
  -- The last prompt that went to the provider and how long its cache lives.
  warm_at            timestamptz,                    -- NULL: none is known of
  warm_seconds       int NOT NULL DEFAULT 0 CHECK (warm_seconds >= 0), -- 0: nothing caches it
  warm_projection    int NOT NULL DEFAULT 0,
  warm_position      int NOT NULL DEFAULT 0,
  warm_tokens        int NOT NULL DEFAULT 0,
  warm_model         text NOT NULL DEFAULT '',
  -- Epochs that came to nothing.
  tried_at           timestamptz,                    -- NULL: there was none
  fruitless          int NOT NULL DEFAULT 0 CHECK (fruitless >= 0), -- in a row
  tried_reason       text NOT NULL DEFAULT '',
  tried_tokens       int NOT NULL DEFAULT 0,         -- size of the prompt
  tried_limit        int NOT NULL DEFAULT 0,         -- and what it might have
  -- A compaction that somebody asked for; it waits for the lane's next request.
  asked_at           timestamptz,                    -- NULL: nobody has
  asked_by           uuid,
  asked_instructions text NOT NULL DEFAULT '',
  -- The newest insert that a lane took over from the one it forked from.
  fork_insert        int NOT NULL DEFAULT 0,
  -- The chain of a lane: how many of its first messages it links, the link after
  -- them, and a proof of both that only the data key can make.
  chain_messages     int NOT NULL DEFAULT 0 CHECK (chain_messages >= 0),
  chain_link         bytea,                          -- NULL: no message is linked yet
  chain_proof        bytea,                          -- NULL: without a data key
  PRIMARY KEY (workspace_id, id),
  FOREIGN KEY (workspace_id, session_id) REFERENCES sessions ON DELETE CASCADE
);
CREATE INDEX lanes_session ON lanes (session_id, workspace_id);

-- Where the requests of a lane ended: a request whose history passes through a
-- head goes on from there.
CREATE TABLE lane_heads (
  workspace_id uuid NOT NULL,
  head         bytea NOT NULL, -- link of the hash chain after the request's last message
  lane_id      uuid NOT NULL,
  position     int NOT NULL,   -- messages up to the head
  seen_at      timestamptz NOT NULL,
  PRIMARY KEY (workspace_id, head),
  FOREIGN KEY (workspace_id, lane_id) REFERENCES lanes ON DELETE CASCADE
);
-- A recorder asks which ends of requests a lane has between two places.
CREATE INDEX lane_heads_place ON lane_heads (workspace_id, lane_id, position);

-- Lanes that turned out to be the beginning, or the end, of another one: a session's requests
-- went to replicas that could not tell each other of them. What is still recorded of such a
-- lane belongs to the one that it has joined.
CREATE TABLE joined_lanes (
  workspace_id uuid NOT NULL,
  lane_id      uuid NOT NULL,
  into_id      uuid NOT NULL,
  joined_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (workspace_id, lane_id),
  FOREIGN KEY (workspace_id, into_id) REFERENCES lanes ON DELETE CASCADE
);
CREATE INDEX joined_lanes_into ON joined_lanes (workspace_id, into_id);

-- A projection: what stands in the prompt for a lane's first messages.
CREATE TABLE epochs (
  workspace_id  uuid NOT NULL,
  lane_id       uuid NOT NULL,
  number        int NOT NULL,
  covers        int NOT NULL,   -- messages of the lane it stands for
  chain         bytea NOT NULL, -- link of the history after them
  projection    bytea NOT NULL, -- JSON head, rendered bytes, zstd
  reason        text NOT NULL,
  tokens_before int NOT NULL,
  tokens_after  int NOT NULL,
  created_at    timestamptz NOT NULL DEFAULT now(),
  -- Tokens that an epoch's projection has at L1, L2 and L3, so that a chart does not open
  -- every projection; NULL: not known.
  level_tokens  integer[],
  PRIMARY KEY (workspace_id, lane_id, number),
  FOREIGN KEY (workspace_id, lane_id) REFERENCES lanes ON DELETE CASCADE
);
-- Which lane the name of an archive stands for: the first bytes of a link.
CREATE INDEX epochs_chain ON epochs (workspace_id, chain);

-- Text that modules have put into a lane's prompt. It stays there with the same
-- bytes until an epoch folds the message it stands in.
CREATE TABLE lane_inserts (
  workspace_id uuid NOT NULL,
  lane_id      uuid NOT NULL,
  number       int NOT NULL CHECK (number > 0),
  message      int NOT NULL CHECK (message >= -1), -- place in the client's list; -1: behind the system prompt
  chain        bytea NOT NULL,                     -- link of the history after that message
  module       text NOT NULL,
  text         text NOT NULL,
  tokens       int NOT NULL,
  items        text[] NOT NULL DEFAULT '{}',       -- what the text holds: pointers, pattern ids …
  put_at       timestamptz NOT NULL DEFAULT now(),
  -- What stands for the text and the items of an insert; NULL: they are in text and items.
  sealed       bytea,
  -- An insert with a block stands in place of a tool result of its message, and source is
  -- the message that has the rest of it.
  block        int NOT NULL DEFAULT 0 CHECK (block >= 0),
  source       int NOT NULL DEFAULT 0 CHECK (source >= 0),
  PRIMARY KEY (workspace_id, lane_id, number),
  FOREIGN KEY (workspace_id, lane_id) REFERENCES lanes ON DELETE CASCADE
);
CREATE INDEX lane_inserts_unsealed ON lane_inserts (workspace_id) WHERE sealed IS NULL;
-- What modules made lately, for the page of the pipeline.
CREATE INDEX lane_inserts_put ON lane_inserts (workspace_id, put_at) INCLUDE (module);

-- Messages whose turns people want to stay in the prompt as they are.
CREATE TABLE lane_pins (
  workspace_id uuid NOT NULL,
  lane_id      uuid NOT NULL,
  message      int NOT NULL CHECK (message >= 0), -- place in the client's list
  pinned_by    uuid NOT NULL,
  pinned_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (workspace_id, lane_id, message),
  FOREIGN KEY (workspace_id, lane_id) REFERENCES lanes ON DELETE CASCADE
);

-- What an epoch of a lane can be planned from once its cache is about to go cold, and
-- what came of it: at most one row a lane, and good for its newest prompt only.
CREATE TABLE lane_plans (
  workspace_id uuid NOT NULL,
  lane_id      uuid NOT NULL,
  sent_at      timestamptz NOT NULL,      -- when the prompt went out
  due_at       timestamptz NOT NULL,      -- when to plan
  outline      bytea NOT NULL,            -- the exchange but for its messages
  plan         bytea,                     -- packed projection; NULL: nothing is planned
  settings     bytea NOT NULL DEFAULT '', -- what the plan depends on beside the history
  factor       double precision NOT NULL DEFAULT 0,
  PRIMARY KEY (workspace_id, lane_id),
  FOREIGN KEY (workspace_id, lane_id) REFERENCES lanes ON DELETE CASCADE
);

-- What models wrote in place of a lane's first messages, and what was rejected of
-- it. An accepted one is what the lane's next epoch puts into the prompt.
CREATE TABLE summaries (
  workspace_id       uuid NOT NULL,
  lane_id            uuid NOT NULL,
  number             int NOT NULL,             -- attempts of the lane so far
  session_id         uuid NOT NULL,
  covers             int NOT NULL,             -- messages of the lane it stands for
  chain              bytea NOT NULL,           -- link of the history after them
  merged             int NOT NULL DEFAULT 0,   -- what the summary covers that it goes on from; 0: none
  status             text NOT NULL CHECK (status IN ('accepted', 'rejected')),
  reason             text NOT NULL DEFAULT '', -- why it was rejected
  version            int NOT NULL,             -- of the text's form
  form               text NOT NULL,            -- how the model was asked: own, cached
  model              text NOT NULL,
  text               text NOT NULL DEFAULT '',
  input_tokens       int NOT NULL,
  cache_read_tokens  int NOT NULL,
  cache_write_tokens int NOT NULL,
  output_tokens      int NOT NULL,
  cost_microusd      bigint NOT NULL,
  created_at         timestamptz NOT NULL DEFAULT now(),
  -- What stands for the text; NULL: it is in text.
  sealed             bytea,
  PRIMARY KEY (workspace_id, lane_id, number),
  FOREIGN KEY (workspace_id, lane_id) REFERENCES lanes ON DELETE CASCADE,
  CHECK ((status = 'rejected') = (reason <> ''))
);
CREATE INDEX summaries_created ON summaries (workspace_id, created_at) INCLUDE (status);

-- What the other trigger of compaction would have come to in a workspace's recent sessions,
-- beside the one that is set, as the background job replayed them last. Money is in millionths
-- of a US dollar, tokens are the models'.
CREATE TABLE trigger_advice (
  workspace_id   uuid PRIMARY KEY REFERENCES workspaces ON DELETE CASCADE,
  made_at        timestamptz NOT NULL,
  since          timestamptz NOT NULL,               -- of sessions that were active since
  trigger        text NOT NULL CHECK (trigger IN ('window', 'break-even')), -- that was set
  sessions       int NOT NULL,                       -- that were replayed
  has_more       boolean NOT NULL,                   -- there were more
  received       bigint NOT NULL,                    -- tokens of their prompts
  verbatim       bigint NOT NULL,                    -- of them, those that went out word for word
  other_verbatim bigint NOT NULL,                    -- and would have with the other trigger
  cost           bigint NOT NULL,                    -- of their prompts
  other_cost     bigint NOT NULL,
  dismissed_at   timestamptz                         -- someone has read it
);

-- Each exchange changes its lane. With room left on its page the new version of the row stays
-- there, and no index is written.
ALTER TABLE lanes SET (fillfactor = 50);

-- What statistics know of a workspace is missing or old while it is new, and on a large
-- installation for days: a table is looked at again when a tenth of it has changed. The
-- planner then takes the workspace for one row, and any index that begins with it, and a
-- filter behind that, for as good as the index of what is asked for. Rows of this table are
-- read by their exact keys, which is the better way without statistics of the column, too.
-- So it is with tables of the archive. Lanes are also joined by the thousand, where the
-- statistics are needed: no index of them but that of their keys begins with the workspace.
ALTER TABLE lane_heads ALTER workspace_id SET STATISTICS 0;

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['sessions', 'session_words', 'lanes', 'lane_heads', 'joined_lanes', 'epochs',
    'lane_inserts', 'lane_pins', 'lane_plans', 'summaries', 'trigger_advice'] LOOP
    EXECUTE format('CREATE POLICY tenant ON %I USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()))', t);
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
  END LOOP;
END $$;
-- +goose StatementEnd

GRANT SELECT, INSERT, UPDATE, DELETE ON sessions, lanes, lane_inserts, lane_pins, lane_plans TO palimpsest_app;
GRANT SELECT, INSERT, DELETE ON session_words TO palimpsest_app;
GRANT SELECT, INSERT, UPDATE ON lane_heads, joined_lanes, trigger_advice TO palimpsest_app;
GRANT SELECT, INSERT, UPDATE (projection) ON epochs TO palimpsest_app;
GRANT SELECT, INSERT, UPDATE (session_id, text, sealed) ON summaries TO palimpsest_app;

-- The words of a text: what stands between anything that is neither letter nor digit.
-- +goose StatementBegin
CREATE FUNCTION words_of(said text) RETURNS SETOF text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT DISTINCT left(word, 40) FROM regexp_split_to_table(lower(left(said, 1000)), '[^[:alnum:]]+') word WHERE word <> ''
$$;
-- +goose StatementEnd

-- Writers keep the words and marks of sessions by triggers, so that they survive deleted requests.
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
CREATE TRIGGER session_words_new AFTER INSERT ON sessions FOR EACH ROW
  WHEN (NEW.title <> '' OR NEW.name <> '') EXECUTE FUNCTION keep_session_words();
CREATE TRIGGER session_words_changed AFTER UPDATE OF title, name ON sessions FOR EACH ROW
  WHEN (OLD.title <> NEW.title OR OLD.name <> NEW.name) EXECUTE FUNCTION keep_session_words();

-- +goose StatementBegin
CREATE FUNCTION mark_bridged() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE sessions s SET bridged = true
    FROM added i JOIN lanes l ON l.workspace_id = i.workspace_id AND l.id = i.lane_id
    WHERE i.module = 'compaction-bridge' AND s.workspace_id = l.workspace_id AND s.id = l.session_id AND NOT s.bridged;
  RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER session_bridged AFTER INSERT ON lane_inserts REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION mark_bridged();

-- Makes lanes and the ends of their newest requests known to all processes before they are
-- recorded. What is there already stays, so that nothing waits for a recorder; tables come in
-- a recorder's order, so that neither waits for the other in a circle. Nothing is lost if the
-- server forgets it again: the recorder writes the same. The end of a request that has left
-- its lane at another process is not the lane's: its recorder stores it in a fork. What is
-- announced of a lane that has joined another one is that one's.
-- +goose StatementBegin
CREATE FUNCTION announce_lanes(
  workspace uuid, sessions uuid[], keys uuid[], formats text[], names text[], sources text[], upstreams text[],
  titles text[], clients text[], models text[],
  lanes uuid[], parents uuid[], forks int[], fork_epochs int[], fork_inserts int[], kinds text[],
  heads bytea[], positions int[], times timestamptz[]
) RETURNS void LANGUAGE sql AS $$
  SELECT set_config('synchronous_commit', 'off', true);

  INSERT INTO sessions (workspace_id, id, api_key_id, format, name, source, upstream, title, client, model, started_at, last_at)
  SELECT DISTINCT ON (id) $1, id, key, format, name, source, upstream, title, client, model, at, at
  FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10, $19, $11) AS t (id, key, format, name, source, upstream, title, client, model, at, lane)
  WHERE NOT EXISTS (SELECT FROM joined_lanes j WHERE j.workspace_id = $1 AND j.lane_id = t.lane)
  ORDER BY id, at
  ON CONFLICT DO NOTHING;

  INSERT INTO lanes (workspace_id, id, session_id, parent_id, fork_at, fork_epoch, fork_insert, kind, position, created_at, last_at)
  SELECT DISTINCT ON (id) $1, id, session, nullif(parent, '00000000-0000-0000-0000-000000000000'), fork, epoch, insert, kind, position, at, at
  FROM unnest($11, $2, $12, $13, $14, $15, $16, $18, $19) AS t (id, session, parent, fork, epoch, insert, kind, position, at)
  WHERE NOT EXISTS (SELECT FROM joined_lanes j WHERE j.workspace_id = $1 AND j.lane_id = t.id)
    AND EXISTS (SELECT FROM sessions s WHERE s.workspace_id = $1 AND s.id = t.session)
  ORDER BY id, at
  ON CONFLICT DO NOTHING;

  INSERT INTO lane_heads (workspace_id, head, lane_id, position, seen_at)
  SELECT DISTINCT ON (head) $1, head, lane, position, at
  FROM (
    SELECT head, coalesce((SELECT into_id FROM joined_lanes j WHERE j.workspace_id = $1 AND j.lane_id = a.lane), lane) AS lane, position, at
    FROM unnest($17, $11, $18, $19) AS a (head, lane, position, at)
  ) AS t
  WHERE head IS NOT NULL AND EXISTS (SELECT FROM lanes l WHERE l.workspace_id = $1 AND l.id = t.lane) AND NOT EXISTS (
    SELECT FROM lane_heads o WHERE o.workspace_id = $1 AND o.lane_id = t.lane AND o.position >= t.position AND o.head <> t.head
  )
  ORDER BY head, at DESC
  ON CONFLICT (workspace_id, head) DO UPDATE SET lane_id = excluded.lane_id, seen_at = excluded.seen_at
    WHERE excluded.seen_at > lane_heads.seen_at;
$$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE trigger_advice, summaries, lane_plans, lane_pins, lane_inserts, epochs, joined_lanes, lane_heads, lanes, session_words, sessions;
DROP FUNCTION announce_lanes, mark_bridged(), keep_session_words(), words_of(text);
