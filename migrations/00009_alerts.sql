-- +goose Up

-- How a workspace wants to be alerted. A workspace without a row has the defaults.
CREATE TABLE alert_settings (
  workspace_id  uuid PRIMARY KEY REFERENCES workspaces ON DELETE CASCADE,
  quiet_from    int NOT NULL CHECK (quiet_from BETWEEN 0 AND 1439), -- minutes after midnight
  quiet_to      int NOT NULL CHECK (quiet_to BETWEEN 0 AND 1439), -- the same as quiet_from: no quiet hours
  time_zone     text NOT NULL,
  error_percent int NOT NULL CHECK (error_percent BETWEEN 1 AND 100) -- of requests that fail
);

-- Where alerts of a workspace go.
CREATE TABLE alert_channels (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  id           uuid NOT NULL,
  kind         text NOT NULL CHECK (kind IN ('webhook', 'slack', 'email')),
  name         text NOT NULL,
  place        text NOT NULL, -- host of the webhook; '' for mails
  user_id      uuid,          -- the member who gets the mails; NULL for webhooks
  sealed       bytea,         -- URL and signing secret; NULL for mails
  rules        text NOT NULL, -- comma-separated
  disabled     boolean NOT NULL DEFAULT false,
  set_by       uuid,          -- who chose the rules last
  created_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (workspace_id, id)
);

-- When people were last alerted to what, so that alerts do not repeat.
CREATE TABLE alert_marks (
  workspace_id uuid NOT NULL REFERENCES workspaces ON DELETE CASCADE,
  rule         text NOT NULL,
  subject      text NOT NULL, -- what the rule was about
  period       text NOT NULL, -- of a budget: its day or month; '' for others
  at           timestamptz NOT NULL,
  PRIMARY KEY (workspace_id, rule, subject)
);

-- The log of alerts, one row for each channel that gets one.
CREATE TABLE alert_deliveries (
  workspace_id uuid NOT NULL,
  id           uuid NOT NULL,            -- version 7: ordered by time; receivers tell repeats by it
  channel_id   uuid NOT NULL,
  rule         text NOT NULL,            -- 'test' for a test
  subject      text NOT NULL,
  title        text NOT NULL,
  body         text NOT NULL,
  path         text NOT NULL,            -- of the page that the alert links to
  created_at   timestamptz NOT NULL,
  next_at      timestamptz NOT NULL,     -- not to be tried before
  until        timestamptz NOT NULL,     -- not to be tried after
  state        text NOT NULL CHECK (state IN ('waiting', 'delivered', 'failed')),
  attempts     int NOT NULL DEFAULT 0,
  tried_at     timestamptz,
  status       int NOT NULL DEFAULT 0,   -- HTTP status of the newest answer; 0 if there was none
  answer       text NOT NULL DEFAULT '', -- the beginning of it, without secrets
  PRIMARY KEY (workspace_id, id),
  FOREIGN KEY (workspace_id, channel_id) REFERENCES alert_channels ON DELETE CASCADE
);
CREATE INDEX alert_deliveries_channel ON alert_deliveries (workspace_id, channel_id);

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['alert_settings', 'alert_channels', 'alert_marks', 'alert_deliveries'] LOOP
    EXECUTE format('CREATE POLICY tenant ON %I USING (workspace_id = (SELECT app_workspace())) WITH CHECK (workspace_id = (SELECT app_workspace()))', t);
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
  END LOOP;
END $$;
-- +goose StatementEnd

-- The job that looks for alerts needs to know which workspaces want any, and nothing else.
CREATE POLICY worker ON alert_channels FOR SELECT TO palimpsest_worker USING (true);

GRANT SELECT, INSERT, UPDATE ON alert_settings TO palimpsest_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON alert_channels, alert_marks, alert_deliveries TO palimpsest_app;
GRANT SELECT (workspace_id, disabled) ON alert_channels TO palimpsest_worker;

-- +goose Down
DROP TABLE alert_deliveries, alert_marks, alert_channels, alert_settings;
