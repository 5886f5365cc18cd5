package sessiondb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/session"
)

// A history that was left for another one was used before that one began.
const sqlBefore = `SELECT l.id, l.position FROM lanes l
	WHERE l.workspace_id = $1 AND l.session_id = $2 AND l.id <> $3 AND l.kind = 'main'
	ORDER BY l.last_at DESC, l.id DESC LIMIT 1`

// Before returns the lane of a session's main conversation that was used last before
// another one was opened, and how many messages it has. It returns
// session.ErrNotFound if there is none.
func (s *Store) Before(ctx context.Context, workspace, sessionID, lane uuid.UUID) (left uuid.UUID, messages int, err error) {
	err = s.door.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Statement.ConnPool.QueryRowContext(ctx, sqlBefore, workspace, sessionID, lane).Scan(&left, &messages)
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = session.ErrNotFound
	}
	if err != nil {
		return uuid.Nil, 0, fmt.Errorf("lane before %s: %w", lane, err)
	}
	return left, messages, nil
}
