-- +goose Up

-- Tokens per o200k token that were learned of models, by provider and model: read with the workspace's settings. The
-- version before does not look at it.
ALTER TABLE workspaces ADD COLUMN IF NOT EXISTS model_factors jsonb NOT NULL DEFAULT '{}';

-- +goose Down
ALTER TABLE workspaces DROP COLUMN IF EXISTS model_factors;
