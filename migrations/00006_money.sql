-- +goose Up

-- What an exchange missed of the provider's cache and why, the projection that its
-- prompt had, and what the epoch that made it was to save.
ALTER TABLE exchanges
  ADD COLUMN miss_cause    text NOT NULL DEFAULT '', -- empty: nothing was missed
  ADD COLUMN missed_tokens int  NOT NULL DEFAULT 0,
  ADD COLUMN projection    int  NOT NULL DEFAULT 0,  -- number; 0: none
  ADD COLUMN predicted_microusd bigint;              -- NULL: no epoch, or one without a prediction

-- The exchanges under each projection of a lane, and those that missed something.
CREATE INDEX exchanges_projection ON exchanges (workspace_id, lane_id, projection)
  INCLUDE (net_microusd, predicted_microusd) WHERE projection > 0;
CREATE INDEX exchanges_miss ON exchanges (workspace_id, at) INCLUDE (miss_cause, missed_tokens) WHERE miss_cause <> '';

-- Sessions that people should look at.
CREATE INDEX exchanges_truncated ON exchanges (workspace_id, at) INCLUDE (session_id) WHERE compression = 'truncated';

-- +goose Down
DROP INDEX exchanges_truncated;
DROP INDEX exchanges_miss;
DROP INDEX exchanges_projection;
ALTER TABLE exchanges
  DROP COLUMN predicted_microusd, DROP COLUMN projection, DROP COLUMN missed_tokens, DROP COLUMN miss_cause;
