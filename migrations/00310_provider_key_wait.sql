-- +goose Up

-- How long the beginning of an answer is waited for, in seconds; 0: as long as the client waits. The
-- version before does not look at it.
ALTER TABLE provider_keys ADD COLUMN IF NOT EXISTS wait_seconds int NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE provider_keys DROP COLUMN IF EXISTS wait_seconds;
