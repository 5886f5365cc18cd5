package billingdb

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/billing"
	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// maxUnsent limits the events sent in one pass.
const maxUnsent = 1000

// Used implements billing.Store.
func (s *Store) Used(ctx context.Context, workspace tenants.WorkspaceID, from, to time.Time) (int64, error) {
	var used int64
	err := s.db.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Raw(`SELECT coalesce(sum(exchanges), 0)::bigint FROM (
				SELECT workspace_id, hour, exchanges FROM usage_meter UNION ALL SELECT workspace_id, hour, exchanges FROM usage_meter_deltas
			) u WHERE workspace_id = ? AND hour >= ? AND hour < ?`, workspace, from, to).Scan(&used).Error
	})
	return used, batchdb.Wrapf(err, "usage of workspace %s", workspace)
}

// CutEvents implements billing.Store.
func (s *Store) CutEvents(ctx context.Context, workspace tenants.WorkspaceID) error {
	err := s.db.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		var hours []struct {
			Hour      time.Time
			Exchanges int64
			Customer  string
		}
		if err := fold(tx, workspace); err != nil {
			return err
		}
		// Locked, so that usage recorded meanwhile stays for the next event.
		err := tx.Raw(`SELECT u.hour, u.exchanges - u.metered AS exchanges, a.customer
			FROM usage_meter u JOIN billing_accounts a ON a.workspace_id = u.workspace_id
			WHERE u.workspace_id = ? AND u.exchanges > u.metered AND a.customer <> ''
				AND u.hour >= a.metered_from AND (a.metered_to IS NULL OR u.hour < a.metered_to)
			ORDER BY u.hour FOR UPDATE OF u`, workspace).Scan(&hours).Error
		if err != nil {
			return err
		}
		for _, cut := range hours {
			err := tx.Exec("UPDATE usage_meter SET metered = metered + ? WHERE workspace_id = ? AND hour = ?", cut.Exchanges, workspace, cut.Hour).Error
			if err != nil {
				return err
			}
			err = tx.Exec("INSERT INTO meter_events (workspace_id, id, customer, at, exchanges) VALUES (?, ?, ?, ?, ?)",
				workspace, uuid.Must(uuid.NewV7()), cut.Customer, cut.Hour, cut.Exchanges).Error
			if err != nil {
				return err
			}
		}
		return nil
	})
	return batchdb.Wrapf(err, "cut meter events of workspace %s", workspace)
}

// fold adds the usage recorded since the last fold to the meter, so that all of it can be cut or looked at.
func fold(tx *gorm.DB, workspace tenants.WorkspaceID) error {
	return tx.Exec("SELECT fold_sums(?)", workspace).Error
}

// Unsent implements billing.Store.
func (s *Store) Unsent(ctx context.Context, workspace tenants.WorkspaceID) ([]billing.MeterEvent, error) {
	var rows []eventRow
	err := s.db.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Raw(`SELECT id, customer, at, exchanges, tried_at FROM meter_events WHERE workspace_id = ? AND sent_at IS NULL
			ORDER BY id LIMIT ?`, workspace, maxUnsent).Scan(&rows).Error
	})
	if err != nil {
		return nil, fmt.Errorf("unsent meter events of workspace %s: %w", workspace, err)
	}
	events := make([]billing.MeterEvent, len(rows))
	for i, row := range rows {
		events[i] = billing.MeterEvent{
			ID: row.ID, Customer: row.Customer, At: row.At.UTC(), Exchanges: row.Exchanges, TriedAt: zeroable(row.TriedAt),
		}
	}
	return events, nil
}

// Trying implements billing.Store.
func (s *Store) Trying(ctx context.Context, workspace tenants.WorkspaceID, event billing.MeterEvent) error {
	return s.change(ctx, workspace, "try", `UPDATE meter_events SET at = ?, tried_at = ? WHERE workspace_id = ? AND id = ? AND sent_at IS NULL`,
		event.At, event.TriedAt, workspace, event.ID)
}

// Sent implements billing.Store.
func (s *Store) Sent(ctx context.Context, workspace tenants.WorkspaceID, event uuid.UUID, at time.Time) error {
	return s.change(ctx, workspace, "send", `UPDATE meter_events SET sent_at = ? WHERE workspace_id = ? AND id = ? AND sent_at IS NULL`, at, workspace, event)
}

// SentAt implements billing.Store.
func (s *Store) SentAt(ctx context.Context, workspace tenants.WorkspaceID, customer string, at time.Time) (int64, error) {
	var sent int64
	err := s.db.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Raw(`SELECT coalesce(sum(exchanges), 0)::bigint FROM meter_events
			WHERE workspace_id = ? AND customer = ? AND at = ? AND sent_at IS NOT NULL`, workspace, customer, at).Scan(&sent).Error
	})
	return sent, batchdb.Wrapf(err, "sent meter events of workspace %s", workspace)
}

func (s *Store) change(ctx context.Context, workspace tenants.WorkspaceID, what, statement string, values ...any) error {
	err := s.db.InTenant(ctx, workspace, func(tx *gorm.DB) error { return tx.Exec(statement, values...).Error })
	return batchdb.Wrapf(err, "%s a meter event of workspace %s", what, workspace)
}

type eventRow struct {
	ID        uuid.UUID
	Customer  string
	At        time.Time
	Exchanges int64
	TriedAt   *time.Time
}
