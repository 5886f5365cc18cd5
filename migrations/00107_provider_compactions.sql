-- +goose Up

-- The provider compacted the history by itself before it answered.
ALTER TABLE exchanges ADD COLUMN compacted boolean NOT NULL DEFAULT false;
CREATE INDEX exchanges_compacted ON exchanges (workspace_id, lane_id, at DESC, id DESC) WHERE tokens_before > 0 AND compacted;

-- +goose Down
DROP INDEX exchanges_compacted;
ALTER TABLE exchanges DROP COLUMN compacted;
