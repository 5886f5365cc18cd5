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
}

// Upkeep deletes what has expired.
type Upkeep struct{ *core }

// Sweep deletes up to limit sessions, each with everything that is kept of it,
// whose workspace keeps none that has not been used for so long, and returns how
// many; what providers said so long ago where they refused is gone as well. It may run in several processes at once: each session is deleted by one.
// Sessions deleted before a failure stay deleted.
func (s Upkeep) Sweep(ctx context.Context, now time.Time, limit int) (deleted int, err error) {
	retentions, err := s.retentions(ctx)
	if err != nil {
		return 0, fmt.Errorf("sweep: %w", err)
	}
	for _, kept := range retentions {
		before := now.UTC().AddDate(0, 0, -kept.days) // days of 24 hours, in whichever zone this machine is
		if err := s.expireErrors(ctx, kept.workspace, before); err != nil {
			return deleted, fmt.Errorf("sweep workspace %s: %w", kept.workspace, err)
		}
		for more := true; more && deleted < limit; {
			if more, err = s.deleteExpired(ctx, kept.workspace, before); err != nil {
				return deleted, fmt.Errorf("sweep workspace %s: %w", kept.workspace, err)
			}
			if more {
				deleted++
			}
		}
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
