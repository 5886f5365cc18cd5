-- +goose Up

-- The model that answered a request, where it's another than the one that was asked for. The version
-- before leaves it empty.
ALTER TABLE exchanges ADD COLUMN IF NOT EXISTS answered_by text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE exchanges DROP COLUMN IF EXISTS answered_by;
