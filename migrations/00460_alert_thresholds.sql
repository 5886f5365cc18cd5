-- +goose Up

-- The thresholds of three more alerts.
ALTER TABLE alert_settings
  ADD COLUMN spend_percent int NOT NULL DEFAULT 300 CHECK (spend_percent BETWEEN 110 AND 10000), -- of a usual day's spend
  ADD COLUMN slow_seconds  int NOT NULL DEFAULT 120 CHECK (slow_seconds BETWEEN 1 AND 3600),     -- that 5 % of answers take
  ADD COLUMN held_percent  int NOT NULL DEFAULT 25 CHECK (held_percent BETWEEN 1 AND 100);       -- of requests that were not compressed enough

-- +goose Down
ALTER TABLE alert_settings DROP COLUMN held_percent, DROP COLUMN slow_seconds, DROP COLUMN spend_percent;
