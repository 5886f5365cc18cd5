-- +goose Up

-- Mails that wait to be sent. They belong to nobody's workspace: the product puts
-- one in within the transaction that it speaks of, and takes it out once it is sent.
CREATE TABLE mails (
  id         uuid PRIMARY KEY,            -- version 7: ordered by time
  recipient  text NOT NULL,
  subject    text NOT NULL,
  body       text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  attempts   int NOT NULL DEFAULT 0,
  next_at    timestamptz NOT NULL DEFAULT clock_timestamp() -- not to be tried before
);
CREATE INDEX mails_next ON mails (next_at);

-- What somebody asked for by an address, before anybody looked whether it is known:
-- whoever asks cannot tell from the answer. The worker looks, and takes it out.
CREATE TABLE account_requests (
  id            uuid PRIMARY KEY,
  kind          text NOT NULL CHECK (kind IN ('signup', 'reset', 'verify')),
  email         text NOT NULL,
  password_hash text NOT NULL DEFAULT '', -- of a sign-up
  workspace     text NOT NULL DEFAULT '', -- name, of a sign-up
  address       text NOT NULL DEFAULT '', -- of the client
  created_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- What a link in a mail proves, once. The link's secret is not kept.
CREATE TABLE user_tokens (
  hash       bytea PRIMARY KEY,           -- HMAC-SHA256 of the secret
  kind       text NOT NULL CHECK (kind IN ('reset', 'verify', 'email')),
  user_id    uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  email      text NOT NULL,               -- the address it was sent to
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  used_at    timestamptz
);
CREATE INDEX user_tokens_user ON user_tokens (user_id);

ALTER TABLE users ADD COLUMN verified_at timestamptz;
ALTER TABLE logins ADD COLUMN last_seen_at timestamptz NOT NULL DEFAULT now();

-- +goose StatementBegin
CREATE FUNCTION app_token() RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT decode(NULLIF(current_setting('app.token', true), ''), 'hex') $$;
-- +goose StatementEnd

CREATE POLICY worker ON mails
  USING ((SELECT current_setting('app.worker', true)) = 'mail') WITH CHECK ((SELECT current_setting('app.worker', true)) = 'mail');
CREATE POLICY worker ON account_requests
  USING ((SELECT current_setting('app.worker', true)) = 'mail') WITH CHECK ((SELECT current_setting('app.worker', true)) = 'mail');
CREATE POLICY own_tokens ON user_tokens USING (user_id = (SELECT app_user())) WITH CHECK (user_id = (SELECT app_user()));
CREATE POLICY presented_token ON user_tokens FOR SELECT USING (hash = (SELECT app_token()));

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['mails', 'account_requests', 'user_tokens']
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
  END LOOP;
END $$;
-- +goose StatementEnd
GRANT SELECT, INSERT, UPDATE, DELETE ON mails, user_tokens TO palimpsest_app;
GRANT SELECT, INSERT, DELETE ON account_requests TO palimpsest_app;

-- +goose Down
DROP TABLE mails, account_requests, user_tokens;
DROP FUNCTION app_token();
ALTER TABLE logins DROP COLUMN last_seen_at;
ALTER TABLE users DROP COLUMN verified_at;
