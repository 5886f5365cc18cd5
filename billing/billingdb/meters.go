package billingdb

import (
	"context"
	"errors"
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
	used, err := batchdb.Scan[int64](ctx, batchdb.Of(s.db, workspace), `SELECT coalesce(sum(exchanges), 0)::bigint FROM (
				SELECT workspace_id, hour, exchanges FROM usage_meter UNION ALL SELECT workspace_id, hour, exchanges FROM usage_meter_deltas
			) u WHERE workspace_id = ? AND hour >= ? AND hour < ?`, workspace, from, to)
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
			err = errors.Join(err,
				batchdb.Write(tx, "UPDATE usage_meter SET metered = metered + ? WHERE workspace_id = ? AND hour = ?", cut.Exchanges, workspace, cut.Hour),
				batchdb.Write(tx, "INSERT INTO meter_events (workspace_id, id, customer, at, exchanges) VALUES (?, ?, ?, ?, ?)",
					workspace, uuid.Must(uuid.NewV7()), cut.Customer, cut.Hour, cut.Exchanges))
		}
		return err
	})
	return batchdb.Wrapf(err, "cut meter events of workspace %s", workspace)
}

// fold adds the usage recorded since the last fold to the meter, so that all of it can be cut or looked at.
func fold(tx *gorm.DB, workspace tenants.WorkspaceID) error {
	return batchdb.Write(tx, "SELECT fold_sums(?)", workspace)
}

// Unsent implements billing.Store.
func (s *Store) Unsent(ctx context.Context, workspace tenants.WorkspaceID) ([]billing.MeterEvent, error) {
	events, err := batchdb.Scan[[]billing.MeterEvent](ctx, batchdb.Of(s.db, workspace), `SELECT id, customer, at, exchanges, tried_at FROM meter_events WHERE workspace_id = ? AND sent_at IS NULL
			ORDER BY id LIMIT ?`, workspace, maxUnsent)
	return events, batchdb.Wrapf(err, "unsent meter events of workspace %s", workspace)
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
	sent, err := batchdb.Scan[int64](ctx, batchdb.Of(s.db, workspace), `SELECT coalesce(sum(exchanges), 0)::bigint FROM meter_events
			WHERE workspace_id = ? AND customer = ? AND at = ? AND sent_at IS NOT NULL`, workspace, customer, at)
	return sent, batchdb.Wrapf(err, "sent meter events of workspace %s", workspace)
}

func (s *Store) change(ctx context.Context, workspace tenants.WorkspaceID, what, statement string, values ...any) error {
	err := batchdb.Exec(ctx, batchdb.Of(s.db, workspace), statement, values...)
	return batchdb.Wrapf(err, "%s a meter event of workspace %s", what, workspace)
}
