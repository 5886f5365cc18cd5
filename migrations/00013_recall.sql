-- +goose Up

-- Which lane the name of an archive stands for: the first bytes of a link.
CREATE INDEX epochs_chain ON epochs (workspace_id, chain);

-- +goose Down
DROP INDEX epochs_chain;
