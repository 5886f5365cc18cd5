package sessiondb

import (
	"context"
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
	sqlExpired    = `SELECT id, exchanges FROM sessions WHERE workspace_id = $1 AND last_at < $2
		ORDER BY last_at LIMIT $3 FOR UPDATE SKIP LOCKED`
	sqlExpireErrors = `UPDATE exchanges SET error_text = NULL WHERE workspace_id = $1 AND error_text IS NOT NULL AND at < $2`
)

// retention is for how long a workspace keeps its sessions.
type retention struct {
	workspace tenants.WorkspaceID
	days      int
	before    time.Time // what has not been used since has expired
}

// Cleaner deletes what has expired.
type Cleaner struct{ *core }

const (
	// sweepTurn is how many sessions of a workspace are deleted before the next one has its turn.
	sweepTurn = 200
	// sweepExchanges bounds how many exchanges the sessions have that one transaction deletes: others wait
	// for what it locks.
	sweepExchanges = 5000
)

// Sweep deletes up to limit sessions, each with everything that is kept of it,
// whose workspace keeps none that has not been used for so long, and returns how
// many; what providers said so long ago where they refused is gone as well. It may run in several processes at once: each session is deleted by one.
// Workspaces take turns, and what fails for one keeps no other from forgetting. Sessions deleted before
// a failure stay deleted.
func (s Cleaner) Sweep(ctx context.Context, now time.Time, limit int) (deleted int, err error) {
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
	var all []retention
	err := s.runner.AsWorker(ctx, func(tx *gorm.DB) (err error) {
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
func (s Cleaner) expireErrors(ctx context.Context, workspace tenants.WorkspaceID, before time.Time) error {
	return s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		_, err := tx.Statement.ConnPool.ExecContext(ctx, sqlExpireErrors, workspace, before)
		return err
	})
}

// deleteExpired deletes in one transaction up to so many expired sessions of a workspace, those first
// that have not been used for longest, and returns how many. It is 0 if others are being used or none is left.
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
