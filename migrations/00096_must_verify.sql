-- +goose Up
-- People who signed up where sign-ups are answered by mail log in once they have opened the
-- link: or who may log in would tell whose address was known.
ALTER TABLE users ADD COLUMN must_verify boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE users DROP COLUMN must_verify;
