-- +goose Up

-- The share of new sessions among keys of one order and base URL. The version before does not look at it.
ALTER TABLE provider_keys ADD COLUMN IF NOT EXISTS weight int NOT NULL DEFAULT 1;

-- +goose Down
ALTER TABLE provider_keys DROP COLUMN IF EXISTS weight;
