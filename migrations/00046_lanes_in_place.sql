-- +goose Up

-- Each exchange changes its lane. With room left on its page the new version of the row stays
-- there, and no index is written.
ALTER TABLE lanes SET (fillfactor = 50);

-- +goose Down
ALTER TABLE lanes RESET (fillfactor);
