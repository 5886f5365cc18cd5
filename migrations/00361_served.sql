-- +goose Up

-- On what terms a request was answered, which decide its price. The version before leaves them empty.
ALTER TABLE exchanges
  ADD COLUMN IF NOT EXISTS service_tier text NOT NULL DEFAULT '',
  ADD COLUMN IF NOT EXISTS speed text NOT NULL DEFAULT '',
  ADD COLUMN IF NOT EXISTS region text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE exchanges DROP COLUMN IF EXISTS service_tier, DROP COLUMN IF EXISTS speed, DROP COLUMN IF EXISTS region;
