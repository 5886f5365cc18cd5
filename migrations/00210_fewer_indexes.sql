-- +goose NO TRANSACTION
-- +goose Up

-- Fewer indexes of exchanges: one for what happened in a lane, instead of two, one for prompts that
-- did not fit, instead of two, and none for refused provider keys, whose requests after the last good
-- one are few in the index of provider keys. The version before reads the new ones just as well.
CREATE INDEX CONCURRENTLY IF NOT EXISTS exchanges_happened ON exchanges (workspace_id, lane_id, at DESC, id DESC)
  WHERE tokens_before > 0 AND (compression NOT IN ('', 'none', 'frozen', 'bypassed') OR class = 'after-compaction' OR compacted);
CREATE INDEX CONCURRENTLY IF NOT EXISTS exchanges_beyond ON exchanges (workspace_id, compression, at) INCLUDE (session_id)
  WHERE compression IN ('truncated', 'unreachable');
DROP INDEX CONCURRENTLY IF EXISTS exchanges_events;
DROP INDEX CONCURRENTLY IF EXISTS exchanges_compacted;
DROP INDEX CONCURRENTLY IF EXISTS exchanges_truncated;
DROP INDEX CONCURRENTLY IF EXISTS exchanges_unreachable;
DROP INDEX CONCURRENTLY IF EXISTS exchanges_rejected;

-- +goose Down
CREATE INDEX CONCURRENTLY IF NOT EXISTS exchanges_rejected ON exchanges (workspace_id, provider_key_id, at) WHERE error_from = 'provider' AND status IN (401, 403);
CREATE INDEX CONCURRENTLY IF NOT EXISTS exchanges_unreachable ON exchanges (workspace_id, at) WHERE compression = 'unreachable';
CREATE INDEX CONCURRENTLY IF NOT EXISTS exchanges_truncated ON exchanges (workspace_id, at) INCLUDE (session_id) WHERE compression = 'truncated';
CREATE INDEX CONCURRENTLY IF NOT EXISTS exchanges_compacted ON exchanges (workspace_id, lane_id, at DESC, id DESC) WHERE tokens_before > 0 AND compacted;
CREATE INDEX CONCURRENTLY IF NOT EXISTS exchanges_events ON exchanges (workspace_id, lane_id, at DESC, id DESC)
  WHERE tokens_before > 0 AND (compression NOT IN ('', 'none', 'frozen', 'bypassed') OR class = 'after-compaction');
DROP INDEX CONCURRENTLY IF EXISTS exchanges_beyond;
DROP INDEX CONCURRENTLY IF EXISTS exchanges_happened;
