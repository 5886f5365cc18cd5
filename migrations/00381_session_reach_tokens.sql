-- +goose Up

-- The tokens of a session's requests that only went through because they were shortened.
ALTER TABLE sessions
  ADD COLUMN IF NOT EXISTS reach_before bigint NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS reach_after  bigint NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE sessions DROP COLUMN IF EXISTS reach_before, DROP COLUMN IF EXISTS reach_after;
