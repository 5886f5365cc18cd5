-- +goose Up

-- The region of a key for a platform, such as us-east-1 for Amazon Bedrock. The version before does not look at it.
ALTER TABLE provider_keys ADD COLUMN IF NOT EXISTS region text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE provider_keys DROP COLUMN IF EXISTS region;
