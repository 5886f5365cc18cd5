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
	"palimpsest/tenants"
)

// The statements of retention. A session is looked at again once it is locked:
// one that is being used is skipped, one that has been used since stays.
const (
	sqlRetentions = `SELECT workspace_id, retention_days FROM workspaces WHERE retention_days IS NOT NULL ORDER BY workspace_id`
	sqlExpired    = `SELECT id FROM sessions WHERE workspace_id = $1 AND last_at < $2
		ORDER BY last_at LIMIT 1 FOR UPDATE SKIP LOCKED`
	sqlExpireErrors = `UPDATE exchanges SET error_text = NULL WHERE workspace_id = $1 AND error_text IS NOT NULL AND at < $2`
)

// retention is for how long a workspace keeps its sessions.
type retention struct {
	workspace tenants.WorkspaceID
	days      int
	before    time.Time // what has not been used since has expired
}

// Upkeep deletes what has expired.
type Upkeep struct{ *core }

// sweepTurn is how many sessions of a workspace are deleted before the next one has its turn.
const sweepTurn = 50

// Sweep deletes up to limit sessions, each with everything that is kept of it,
// whose workspace keeps none that has not been used for so long, and returns how
// many; what providers said so long ago where they refused is gone as well. It may run in several processes at once: each session is deleted by one.
// Workspaces take turns, and what fails for one keeps no other from forgetting. Sessions deleted before
// a failure stay deleted.
func (s Upkeep) Sweep(ctx context.Context, now time.Time, limit int) (deleted int, err error) {
	due, err := s.retentions(ctx)
	if err != nil {
		return 0, fmt.Errorf("sweep: %w", err)
	}
	var failures []error
	for i := range due {
		due[i].before = now.UTC().AddDate(0, 0, -due[i].days) // days of 24 hours, in whichever zone this machine is
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

// deleteSome deletes up to so many expired sessions of a workspace.
func (s Upkeep) deleteSome(ctx context.Context, kept retention, most int) (deleted int, err error) {
	for deleted < most {
		was, err := s.deleteExpired(ctx, kept.workspace, kept.before)
		if err != nil || !was {
			return deleted, err
		}
		deleted++
	}
	return deleted, nil
}

func (s Upkeep) retentions(ctx context.Context) ([]retention, error) {
	var all []retention
	err := s.door.AsWorker(ctx, func(tx *gorm.DB) (err error) {
		all, err = batchdb.Rows(tx, func(row pgx.CollectableRow) (one retention, err error) {
			err = row.Scan(&one.workspace, &one.days)
			return one, err
		}, sqlRetentions)
		return err
	})
	return all, err
}

// expireErrors forgets what providers said before a time: there are errors of no
// session.
func (s Upkeep) expireErrors(ctx context.Context, workspace tenants.WorkspaceID, before time.Time) error {
	return s.door.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		_, err := tx.Statement.ConnPool.ExecContext(ctx, sqlExpireErrors, workspace, before)
		return err
	})
}

// deleteExpired deletes the session that has not been used for longest, if that is
// before a time, and reports whether there was one.
func (s Upkeep) deleteExpired(ctx context.Context, workspace tenants.WorkspaceID, before time.Time) (was bool, err error) {
	err = s.door.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		var id uuid.UUID
		err := tx.Statement.ConnPool.QueryRowContext(ctx, sqlExpired, workspace, before).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		was = true
		return deleteSession(tx, workspace, id)
	})
	return was && err == nil, err
}
