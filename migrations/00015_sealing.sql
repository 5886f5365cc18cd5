-- +goose Up

-- What stands for the text and the items of an insert that were stored readable
-- before; NULL: they are in text and items still.
ALTER TABLE lane_inserts ADD COLUMN sealed bytea;
CREATE INDEX lane_inserts_unsealed ON lane_inserts (workspace_id) WHERE sealed IS NULL;

-- Kept answers are sealed under the data key of their workspace from now on, and fall
-- with the workspace. Those from before open no more: as of any cache, nothing of them
-- is missed.
TRUNCATE cached_answers;
ALTER TABLE cached_answers ADD FOREIGN KEY (workspace_id) REFERENCES workspaces ON DELETE CASCADE;

-- +goose Down
-- Nothing that is sealed can be read by a program from before: its inserts stay
-- empty, its plans are made anew.
ALTER TABLE cached_answers DROP CONSTRAINT cached_answers_workspace_id_fkey;
TRUNCATE cached_answers, lane_plans;
DROP INDEX lane_inserts_unsealed;
ALTER TABLE lane_inserts DROP COLUMN sealed;
