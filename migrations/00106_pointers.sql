-- +goose Up

-- An insert with a block stands in place of a tool result of its message, and source is
-- the message that has the rest of it.
ALTER TABLE lane_inserts ADD COLUMN block int NOT NULL DEFAULT 0 CHECK (block >= 0),
  ADD COLUMN source int NOT NULL DEFAULT 0 CHECK (source >= 0);

-- +goose Down
DELETE FROM lane_inserts WHERE block > 0; -- an older program would show them behind their message
ALTER TABLE lane_inserts DROP COLUMN block, DROP COLUMN source;
