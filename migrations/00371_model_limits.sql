-- +goose Up

-- Context windows and longest answers of models in place of the catalog's: a list that is read with the workspace's
-- settings. The version before does not look at it.
ALTER TABLE workspaces ADD COLUMN IF NOT EXISTS model_limits jsonb NOT NULL DEFAULT '[]';

-- +goose Down
ALTER TABLE workspaces DROP COLUMN IF EXISTS model_limits;
