-- +goose Up

-- The columns that a person has hidden, by list: {"sessions": ["reach"]}. They are part of the membership, and end with it.
ALTER TABLE members ADD COLUMN hidden_columns jsonb NOT NULL DEFAULT '{}' CHECK (octet_length(hidden_columns::text) <= 4096);

-- +goose Down
ALTER TABLE members DROP COLUMN hidden_columns;
