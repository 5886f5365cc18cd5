package sessiondb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

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

// The statements of retention. A session in use is skipped. A locked session is checked again, since it may
// have been used in the meantime.
const (
	sqlRetentions = `SELECT workspace_id, retention_days FROM workspaces WHERE retention_days IS NOT NULL ORDER BY workspace_id`
	sqlExpired    = `SELECT id, exchanges FROM sessions WHERE workspace_id = $1 AND last_at < $2
		ORDER BY last_at LIMIT $3 FOR UPDATE SKIP LOCKED`
	sqlExpireErrors = `UPDATE exchanges SET error_text = NULL WHERE workspace_id = $1 AND error_text IS NOT NULL AND at < $2`
)

// retention is how long a workspace keeps its sessions.
type retention struct {
	workspace tenants.WorkspaceID
	days      int
	before    time.Time // sessions last used before this time have expired
}

// Cleaner deletes expired sessions.
type Cleaner struct{ *core }

const (
	// sweepTurn is how many sessions of a workspace are deleted before the next workspace's turn.
	sweepTurn = 200
	// sweepExchanges bounds the exchanges of the sessions deleted by one transaction, because others wait for
	// its locks.
	sweepExchanges = 5000
)

// Sweep deletes up to limit expired sessions with all their data and returns how many. It also deletes the
// providers' error texts from before the retention period. It may run in several processes in parallel, since
// each session is deleted by only one. Workspaces take turns, and a failure for one does not stop the others.
// Sessions deleted before a failure stay deleted.
func (s Cleaner) Sweep(ctx context.Context, now time.Time, limit int) (deleted int, err error) {
	due, err := s.retentions(ctx)
	if err != nil {
		return 0, fmt.Errorf("sweep: %w", err)
	}
	var failures []error
	for i := range due {
		due[i].before = now.UTC().AddDate(0, 0, -due[i].days) // days of 24 hours, independent of this machine's time zone
		if err := s.expireErrors(ctx, due[i].workspace, due[i].before); err != nil {
			failures = append(failures, fmt.Errorf("sweep errors of workspace %s: %w", due[i].workspace, err))
		}
	}
	for len(due) > 0 && deleted < limit && ctx.Err() == nil {
		var more []retention
		for _, kept := range due {
			turn := min(sweepTurn, limit-deleted)
			some, err := s.deleteSome(ctx, kept, turn)
			deleted += some
			switch {
			case err != nil:
				failures = append(failures, fmt.Errorf("sweep workspace %s: %w", kept.workspace, err))
			case some == turn:
				more = append(more, kept)
			}
		}
		due = more
	}
	return deleted, errors.Join(append(failures, context.Cause(ctx))...)
}

// deleteSome deletes up to most expired sessions of a workspace.
func (s Cleaner) deleteSome(ctx context.Context, kept retention, most int) (deleted int, err error) {
	for deleted < most {
		some, err := s.deleteExpired(ctx, kept, most-deleted)
		deleted += some
		if err != nil || some == 0 {
			return deleted, err
		}
	}
	return deleted, nil
}

func (s Cleaner) retentions(ctx context.Context) ([]retention, error) {
	all, err := batchdb.List(ctx, s.runner.AsWorker, func(row pgx.CollectableRow) (one retention, err error) {
		err = row.Scan(&one.workspace, &one.days)
		return one, err
	}, sqlRetentions)
	return all, err
}

// expireErrors deletes the providers' error texts from before a time, including those of exchanges without a
// session.
func (s Cleaner) expireErrors(ctx context.Context, workspace tenants.WorkspaceID, before time.Time) error {
	_, err := batchdb.Changed(ctx, batchdb.Of(s.runner, workspace), sqlExpireErrors, workspace, before)
	return err
}

// deleteExpired deletes up to most expired sessions of a workspace in one transaction, the longest unused
// first, and returns how many. It returns 0 if all remaining ones are in use or there are no more.
func (s Cleaner) deleteExpired(ctx context.Context, kept retention, most int) (deleted int, err error) {
	var ids []uuid.UUID
	err = s.runner.InTenant(ctx, kept.workspace, func(tx *gorm.DB) error {
		exchanges := int64(0)
		err := batchdb.Each(tx, func(row pgx.CollectableRow) error {
			var id uuid.UUID
			var has int64
			if err := row.Scan(&id, &has); err != nil {
				return err
			}
			if exchanges += has; exchanges <= sweepExchanges || len(ids) == 0 {
				ids = append(ids, id)
			}
			return nil
		}, sqlExpired, kept.workspace, kept.before, most)
		if err != nil || len(ids) == 0 {
			return err
		}
		return deleteSessions(tx, kept.workspace, ids)
	})
	if err != nil {
		return 0, err
	}
	return len(ids), nil
}
