package sessiondb

import (
	"context"
	"database/sql"
	"errors"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// The previous history was last used before this one began.
const sqlBefore = `SELECT l.id, l.position FROM lanes l
	WHERE l.workspace_id = $1 AND l.session_id = $2 AND l.id <> $3 AND l.kind = 'main'
	ORDER BY l.last_at DESC, l.id DESC LIMIT 1`

// Messages that a client kept have the same hash in the history that it left.
const sqlHolding = `SELECT l.id, l.position, sum(e.tokens) AS held FROM (SELECT DISTINCT unnest($2::bytea[]) AS hash) kept
	CROSS JOIN LATERAL (SELECT lane_id, tokens FROM archive_entries WHERE workspace_id = $1 AND hash = kept.hash OFFSET 0) e
	CROSS JOIN LATERAL (SELECT id, session_id, position, kind, last_at FROM lanes WHERE workspace_id = $1 AND id = e.lane_id OFFSET 0) l
	CROSS JOIN LATERAL (SELECT api_key_id, format, upstream, end_user FROM sessions WHERE workspace_id = $1 AND id = l.session_id OFFSET 0) s
	WHERE l.id <> $3 AND l.kind = 'main' AND s.api_key_id = $4 AND s.format = $5 AND s.upstream = $6 AND s.end_user = $7
	GROUP BY l.id, l.position, l.last_at ORDER BY held DESC, l.last_at DESC, l.id DESC LIMIT 1`

// Holding returns the main lane of the scope, other than lane, that holds most of the messages with the given
// hashes. A tie goes to the most recently used lane. It returns session.ErrNotFound if there is no such lane.
func (s *Store) Holding(ctx context.Context, scope session.Scope, lane uuid.UUID, messages []conversation.Hash) (session.LaneMatch, error) {
	hashes := make([][]byte, len(messages))
	for i := range messages {
		hashes[i] = messages[i][:]
	}
	var held session.LaneMatch
	err := s.runner.InTenant(ctx, scope.Workspace, func(tx *gorm.DB) error {
		row := tx.Statement.ConnPool.QueryRowContext(ctx, sqlHolding, scope.Workspace, hashes, lane, scope.APIKey, string(scope.Format), storable(scope.Upstream), scope.EndUser)
		return row.Scan(&held.Lane, &held.Messages, &held.Tokens)
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = session.ErrNotFound
	}
	return held, batchdb.Wrapf(err, "lane that holds %d messages", len(messages))
}

// Before returns the most recently used lane of a session's main conversation before another one was opened,
// and its length in messages. It returns session.ErrNotFound if there is no such lane.
func (s *Store) Before(ctx context.Context, workspace tenants.WorkspaceID, sessionID, lane uuid.UUID) (left uuid.UUID, messages int, err error) {
	err = s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Statement.ConnPool.QueryRowContext(ctx, sqlBefore, workspace, sessionID, lane).Scan(&left, &messages)
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = session.ErrNotFound
	}
	return left, messages, batchdb.Wrapf(err, "lane before %s", lane)
}
