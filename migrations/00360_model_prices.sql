-- +goose Up

-- What a workspace pays for models in place of their list prices: a list that is read with the
-- workspace's settings. The version before does not look at it.
ALTER TABLE workspaces ADD COLUMN IF NOT EXISTS model_prices jsonb NOT NULL DEFAULT '[]';

-- +goose Down
ALTER TABLE workspaces DROP COLUMN IF EXISTS model_prices;
