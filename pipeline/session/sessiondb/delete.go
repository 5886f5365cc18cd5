package sessiondb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// The statements of a deletion of sessions, in order. The objects of their lanes and answers are locked
// before they are checked again. A writer of the same message in the meantime therefore either comes first
// and keeps it, or waits and stores it again.
const (
	sqlLock       = `SELECT id FROM sessions WHERE workspace_id = $1 AND id = $2 FOR UPDATE`
	sqlLaneIDs    = `SELECT id FROM lanes WHERE workspace_id = $1 AND session_id = ANY($2::uuid[]) ORDER BY id`
	sqlCandidates = `SELECT e.hash FROM archive_entries e JOIN lanes l ON l.workspace_id = e.workspace_id AND l.id = e.lane_id
			WHERE l.workspace_id = $1 AND l.session_id = ANY($2::uuid[])
		UNION SELECT answer FROM exchanges WHERE workspace_id = $1 AND session_id = ANY($2::uuid[]) AND answer IS NOT NULL`
	sqlAnswers = `UPDATE exchanges SET answer = NULL, report = NULL, error_text = NULL, session_id = NULL, lane_id = NULL
		WHERE workspace_id = $1 AND session_id = ANY($2::uuid[])`
	// An end user's own id is deleted with their last session.
	sqlDelete = `WITH gone AS (DELETE FROM sessions WHERE workspace_id = $1 AND id = ANY($2::uuid[]) RETURNING end_user)
		UPDATE end_users u SET name = NULL WHERE u.workspace_id = $1 AND u.name IS NOT NULL AND u.id IN (SELECT end_user FROM gone WHERE end_user <> '')
			AND NOT EXISTS (SELECT FROM sessions s WHERE s.workspace_id = $1 AND s.end_user = u.id AND s.end_user <> '' AND s.id <> ALL($2::uuid[]))`
	sqlLockObjects = `SELECT hash FROM archive_objects
		WHERE workspace_id = $1 AND hash = ANY($2::bytea[]) ORDER BY hash FOR UPDATE`
	sqlUnheld = ` WHERE workspace_id = $1 AND hash = ANY($2::bytea[])
		AND NOT EXISTS (SELECT FROM archive_entries e WHERE e.workspace_id = $1 AND e.hash = archive_objects.hash)
		AND NOT EXISTS (SELECT FROM exchanges x WHERE x.workspace_id = $1 AND x.answer = archive_objects.hash)`
	sqlDeleteObjects = `DELETE FROM archive_objects` + sqlUnheld + ` AND place = 0 AND segment_id IS NULL`
	sqlDoomObjects   = `UPDATE archive_objects SET place = 2, bytes = NULL` + sqlUnheld + ` AND segment_id IS NOT NULL` // archivedb.Mover deletes them in the bucket
)

// Delete removes a session: its lanes, heads, projections, archived messages and answers, except messages
// that another session also holds. The cost of its exchanges remains, as exchanges without a session and
// without a report. It returns session.ErrNotFound if the workspace has no such session.
func (s Browser) Delete(ctx context.Context, tenant tenants.Tenant, id uuid.UUID) error {
	workspace := tenant.Workspace()
	err := s.runner.InTenant(ctx, tenant, func(tx *gorm.DB) error {
		var locked uuid.UUID
		err := tx.Statement.ConnPool.QueryRowContext(ctx, sqlLock, workspace, id).Scan(&locked)
		if errors.Is(err, sql.ErrNoRows) {
			return session.ErrNotFound
		}
		if err != nil {
			return err
		}
		return deleteSessions(tx, workspace, []uuid.UUID{id})
	})
	return batchdb.Wrapf(err, "delete session %s", id)
}

// deleteSessions deletes sessions with locked rows and notifies all replicas.
func deleteSessions(tx *gorm.DB, workspace tenants.WorkspaceID, ids []uuid.UUID) error {
	lanes, err := batchdb.Rows(tx, pgx.RowTo[uuid.UUID], sqlLaneIDs, workspace, ids)
	if err != nil {
		return err
	}
	if err := deleteRows(tx, workspace, ids); err != nil {
		return err
	}
	for _, lane := range lanes {
		if err := notify(tx, workspace, lane, 0); err != nil {
			return err
		}
	}
	return nil
}

func deleteRows(tx *gorm.DB, workspace tenants.WorkspaceID, ids []uuid.UUID) error {
	held, err := batchdb.Rows(tx, pgx.RowTo[[]byte], sqlCandidates, workspace, ids)
	if err != nil {
		return fmt.Errorf("held messages: %w", err)
	}
	for _, statement := range []string{sqlAnswers, sqlDelete} {
		if err := batchdb.Later(tx, statement, workspace, ids); err != nil {
			return err
		}
	}
	for _, statement := range []string{sqlLockObjects, sqlDeleteObjects, sqlDoomObjects} {
		if err := batchdb.Later(tx, statement, workspace, held); err != nil {
			return err
		}
	}
	return nil
}

// column returns the only column of a statement on one row of a workspace.
func column[V any](tx *gorm.DB, statement string, workspace tenants.WorkspaceID, id uuid.UUID) ([]V, error) {
	return batchdb.Rows(tx, pgx.RowTo[V], statement, workspace, id)
}
