-- +goose Up
-- Sessions are kept apart by the base URL that their prompts go to: '' for the
-- provider's own, and for sessions recorded by a version that does not know it.
ALTER TABLE sessions ADD COLUMN upstream text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE sessions DROP COLUMN upstream;
