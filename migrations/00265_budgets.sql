-- +goose Up

-- The budgets of a workspace, of its members and of its projects, beside those of API keys: a
-- list that is read with the workspace's settings. The version before does not look at it.
ALTER TABLE workspaces ADD COLUMN IF NOT EXISTS budgets jsonb NOT NULL DEFAULT '[]';

-- +goose Down
ALTER TABLE workspaces DROP COLUMN IF EXISTS budgets;
