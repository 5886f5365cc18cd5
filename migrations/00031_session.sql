-- +goose Up

-- Tokens that an epoch's projection has at L1, L2 and L3, so that a chart does not open
-- every projection; NULL: the epoch is older than the column.
ALTER TABLE epochs ADD COLUMN level_tokens integer[];

-- +goose Down
ALTER TABLE epochs DROP COLUMN level_tokens;
