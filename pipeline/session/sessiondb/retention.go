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

// expireErrors deletes the providers' error texts from before a time, including those of exchanges without a
// session.
func (s Cleaner) expireErrors(ctx context.Context, workspace tenants.WorkspaceID, before time.Time) error {
	return s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		_, err := tx.Statement.ConnPool.ExecContext(ctx, sqlExpireErrors, workspace, before)
		return err
	})
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
