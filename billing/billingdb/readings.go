package billingdb

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/billing"
	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// KeepNotice implements billing.Store.
func (s *Store) KeepNotice(ctx context.Context, workspace tenants.WorkspaceID, notice billing.Notice, then func(tenant tenants.Tenant) error) error {
	err := s.db.Together(ctx, workspace, func(tenant tenants.Tenant) error {
		isNew := false
		err := s.db.InTenant(ctx, tenant, func(tx *gorm.DB) error {
			kept := tx.Exec(`INSERT INTO billing_events (workspace_id, id, event, type, received_at) VALUES (?, ?, ?, ?, ?)
				ON CONFLICT DO NOTHING`, workspace, notice.ID, notice.Event, notice.Type, notice.ReceivedAt)
			isNew = kept.RowsAffected > 0
			return kept.Error
		})
		if err != nil || !isNew {
			return err
		}
		return then(tenant)
	})
	return batchdb.Wrapf(err, "keep notice %s", notice.Event)
}

// IsDone implements billing.Store.
func (s *Store) IsDone(ctx context.Context, workspace tenants.WorkspaceID, notice uuid.UUID) (bool, error) {
	done, err := batchdb.Scan[[]bool](ctx, batchdb.Of(s.db, workspace), "SELECT done_at IS NOT NULL FROM billing_events WHERE workspace_id = ? AND id = ?", workspace, notice)
	if err != nil {
		return false, fmt.Errorf("notice %s: %w", notice, err)
	}
	return len(done) == 1 && done[0], nil
}

// BeginReading implements billing.Store.
func (s *Store) BeginReading(ctx context.Context, workspace tenants.WorkspaceID) (int64, error) {
	reading, err := batchdb.Scan[int64](ctx, batchdb.Of(s.db, workspace), `INSERT INTO billing_accounts (workspace_id, reading) VALUES (?, 1)
			ON CONFLICT (workspace_id) DO UPDATE SET reading = billing_accounts.reading + 1 RETURNING reading`, workspace)
	return reading, batchdb.Wrapf(err, "begin reading of workspace %s", workspace)
}

// KeepReading implements billing.Store.
func (s *Store) KeepReading(ctx context.Context, workspace tenants.WorkspaceID, reading int64, began time.Time, state billing.State) error {
	err := s.db.Together(ctx, workspace, func(tenant tenants.Tenant) error {
		var before billing.Account
		isNewest := false
		err := s.db.InTenant(ctx, tenant, func(tx *gorm.DB) error {
			// The lock keeps the account unchanged, so that the state before matches the recorded change.
			if err := tx.Exec("SELECT FROM billing_accounts WHERE workspace_id = ? FOR UPDATE", workspace).Error; err != nil {
				return err
			}
			var err error
			if before, err = accountOf(tx, workspace); err != nil {
				return err
			}
			isNewest, err = keepState(tx, workspace, reading, state)
			if err != nil {
				return err
			}
			return batchdb.Write(tx, "UPDATE billing_events SET done_at = ? WHERE workspace_id = ? AND done_at IS NULL AND received_at < ?",
				time.Now(), workspace, began)
		})
		if err != nil || !isNewest {
			return err
		}
		was, is := before.Fields(), state.Fields()
		if maps.Equal(was, is) {
			return nil
		}
		return s.audit.Note(ctx, tenant, tenants.Change{Action: tenants.PlanChanged, Target: state.Subscription, Before: was, After: is})
	})
	return batchdb.Wrapf(err, "keep reading %d of workspace %s", reading, workspace)
}

// keepState stores a state unless a newer reading has been stored, and reports whether it did.
func keepState(tx *gorm.DB, workspace tenants.WorkspaceID, reading int64, state billing.State) (bool, error) {
	kept := tx.Exec(`UPDATE billing_accounts SET read = ?, due_at = '-infinity', subscription = ?, plan = ?, status = ?, seats = ?, period_start = ?,
			period_end = ?, trial_end = ?, ends_at = ?, past_due_since = ?, metered_from = ?, metered_to = ?
		WHERE workspace_id = ? AND read < ?`,
		reading, state.Subscription, string(state.Plan), string(state.Status), state.Seats, nullable(state.PeriodStart),
		nullable(state.PeriodEnd), nullable(state.TrialEnd), nullable(state.EndsAt), nullable(state.PastDueSince),
		nullable(state.MeteredFrom), nullable(state.MeteredTo), workspace, reading)
	return kept.RowsAffected > 0, kept.Error
}
